"""What people and the agent say in the coding scenario, English. The keys are those of `speech_zh`."""

from __future__ import annotations

SPEECH: dict[str, tuple[str, ...]] = {
    "system": (
        "You are the coding agent of the $project team. The repository holds the $about service: sources under "
        "`src/$project`, tests under `tests`, deployment files under `deploy`, decisions in `docs/decisions.md`.\n\n"
        "How we work:\n"
        "- Look before you change: read the file and find its callers first.\n"
        "- A fix comes with a test that failed before it. Run the tests of the module, then the neighbours.\n"
        "- Never change a constant without saying in the summary what it was and what it is.\n"
        "- Commit in small steps; the ticket stands in the subject.\n"
        "- Independent look-ups may go out in one message.\n"
        "- Keep summaries short. When something is not in the repository or the conversation, say that you do not know."
        "\n\nPeople you will hear of: $team. Tickets look like $prefix-123, error codes like $codes-1234.",
    ),
    "bug": (
        "$ticket«, please|»: $who «reports|says|has noticed» that $symptom. «The clients see|The log has|"
        "It comes with» "
        "$code. «It started on $day.|First seen on $day.|According to support this began on $day.» «Find the cause and "
        "fix it.|Can you track it down?|Please fix it; a test would be good.»",
        "«Next|Now for something urgent|Another one for you»: since $day we get $code and $symptom. «It is $ticket, "
        "opened by $who.|$who opened $ticket for it.» «I have not looked at it yet.|I suspect something small.|No idea "
        "which module raises that.»",
        "Could you take $ticket? «In short|What we know»: $symptom«, and the callers get $code|; the error is $code». "
        "$who «traced the first case back to|found the first one in the logs of|saw it first on» $day.",
    ),
    "change": (
        "«One change|A small one|Something from the planning meeting»: «please set|we want» the $what of "
        "`$name` «to|at» "
        "$new $unit«.| from now on.» $who «asked for it|decided that|insists», because $reason.",
        "$who «wrote|called»: the $what in `$name` «has to become|should be» $new $unit, since $reason. «Please change "
        "it and run the tests.|Can you do that now?|Check who else reads it.»",
    ),
    "change_again": (
        "About the $what of `$name` «again|once more»: $old «was not right|did not hold up|turned out wrong». Make it "
        "$new $unit«, please|»; $who «measured it|says» that $reason.",
        "«Sorry to come back to this|We are back at that»: the $what of `$name`, now $old, «has to go to|must be» $new "
        "$unit. «The reason, from $who|$who explains»: $reason.",
    ),
    "decide": (
        "For the record: we keep the $what of `$name` at $old $unit, because $reason. $who and I «decided|agreed on» "
        "that today. «Please write it into the decisions.|Add it to docs/decisions.md, would you?»",
        "«We talked about it at length|There was a long thread»: the $what of `$name` stays at $old $unit. «The reason|"
        "Why»: $reason. $who «signed it off|agrees». «Note it down where people find it.|Put it into the decisions "
        "file.»",
    ),
    "feature": (
        "$ticket: `$name` needs a `$method`«, much like what `$model` has|; `$model` does something similar». «$who "
        "needs it for the reports.|$who asked for it.|It is for $who.» «Tests too, please.|With tests.»",
        "«New feature|Something new»: please add `$method` to `$name` ($ticket«, requested by $who|, $who "
        "is waiting for "
        "it»). «Look at|Take the style from» `$model` «first|»«; keep the public interface as it is|».",
    ),
    "refactor": (
        "«I keep misreading|Nobody understands|$who stumbled over» the name `$before` in `$name`. «Rename it to|Please "
        "call it» `$after` everywhere«; no change in behaviour|, tests included|».",
        "«Clean-up|Small refactoring» ($ticket): `$before` in `$name` should be called `$after`, «says "
        "$who in review|as "
        "$who suggested». «Please check all callers.|Mind the tests.»",
    ),
    "history": (
        "«Who has been working on|I need the history of|What happened lately in» `$name`? «$who asks, for the "
        "review.|It is for the audit.|I want to know before we touch it.» «Look especially at $hash.|What "
        "is in $hash?»",
        "«Quick question|Before the release»: what did $hash change«, and what else went in around it|»? «$who "
        "suspects it.|I do not remember it.» «It should be in `$name`.|I think it touched `$name`.»",
    ),
    "ops": (
        "«Staging is slow|Staging misbehaves|Strange errors on staging» «since this morning|again»: `$name` «collides "
        "with the log shipper|cannot bind its port|shares a port with the proxy». «Move it to port $port.|Give it port "
        "$port, please.» «And tell me what the log says.|Check the log as well.»",
        "$who «needs the port of|reserved a port for» `$name` on staging: it should «listen on|move to» $port. «Change "
        "deploy/staging.toml and look at the log|Please update the staging file and see if the log is clean».",
    ),
    "look": (
        "«Let me see|I will check|First» where $code is raised«, and what went in lately|».",
        "«I start with|Starting from» the error code «and the recent history|and the log».",
        "«Searching for|Looking up» $code«, and the last commits next to it|».",
    ),
    "read": (
        "«It comes from|That is raised in» `$name`. Reading «the whole file|it» «first|».",
        "`$name` «it is|then»: «let me read it|I want to see all of it» «before I run anything|».",
        "«The file first.|I need to see `$name`.|Now the module itself.»",
    ),
    "run": (
        "«Now the tests|Running the tests» of this module«, to see it fail|».",
        "«Let me reproduce it.|Reproducing it with the tests.|Does a test show it?»",
    ),
    "add_test": ("«A test for it first.|First the test that should hold.|I write the test before the fix.»",),
    "fix": (
        "«There it is|Found it|That explains it»: $cause. «Fixing that line.|I change only that.|»",
        "In `$method`, $cause. «A small edit.|Correcting it.»",
    ),
    "edit": ("«Making the change.|Now the edit.|Editing.»", "«That is the place.|One line to change.|Here.»", ""),
    "again": ("«Tests again.|And the tests.|Running the tests once more.»", "«Checking that nothing else broke.|»"),
    "commit": ("«All green|Everything passes»; «committing|a commit».", "«Committing.|I commit this.»"),
    "both": (
        "«I look at both at once.|Both in one go.|These two are independent.»",
        "«Let me look at|Reading» the two «side by side|together».",
    ),
    "bug_done": (
        "$ticket is «fixed|done»: $cause. «The test|`$test`» failed before and passes now«; the rest of the suite is "
        "unchanged|». «Nothing else calls `$method` in that way.|I left the callers alone.|The interface is the same.»",
        "«Done|Fixed». $Cause, in `$method`. «I changed that line only|The change is one line», «and the neighbouring "
        "tests pass|and all tests of the package pass». «You may close $ticket.|$ticket can be closed after the next "
        "deploy.»",
    ),
    "change_done": (
        "«Done|Changed»: `$const` was $old and is now $new. «Its tests pass|All tests pass»«; nobody else "
        "overrides it|; "
        "the readers take it from the module|».",
        "`$const` «went|is changed» from $old to $new. «The tests read the constant, so none had to change.|Tests are "
        "green.|I found no copy of the number elsewhere.»",
    ),
    "decide_done": (
        "«Written down|Recorded» as $decision in `docs/decisions.md`«, with the reason and today's date|».",
        "It is $decision now. «I put it at the end of the file.|Whoever changes the constant will find it "
        "by its name.»",
    ),
    "feature_done": (
        "`$method` is in `$name`, «with two tests|tests included». It «follows|is built like» what `$model` does«, "
        "except that it takes no lease|».",
        "«Added|Done»: `$method` in `$name`«, covered by two tests|». «The public interface is otherwise unchanged.|"
        "$who can use it from the next deploy on.|I did not touch `$model`.»",
    ),
    "refactor_done": (
        "`$before` is `$after` now, «in the module and its tests|everywhere I found it». «No behaviour changed.|The "
        "tests pass as before.»",
        "Renamed. «Two files changed|Module and tests changed»; «nothing outside calls it|the callers use the module's "
        "public names».",
    ),
    "history_done": (
        "$Hash «is about|does this»: “$subject”. «It is small and touches `$name` only.|The neighbours in the log are "
        "unrelated.|I see nothing suspicious in it.»",
        "«In short|As far as the log goes»: $hash is “$subject”, «part of the usual upkeep|nothing "
        "dramatic» of `$name`. "
        "«The full list is above.|Tell me if you want another one opened.»",
    ),
    "ops_done": (
        "`$name` «listens on|is moved to» $port on staging now; «it was $old_port before|before, it had $old_port». "
        "«The log is quiet apart from some slow calls.|In the log I see time-outs of the peer, nothing else.»",
        "«Moved|Done»: $old_port → $port for `$name`. «The health check answers.|It comes up healthy.» "
        "«The warnings in "
        "the log are older.|The log shows retries, all of them successful in the end.»",
    ),
    "q_owner": (
        "Who owns the module that raised the error of $ticket?",
        "Who is the owner of the code behind $ticket?",
    ),
    "q_owner_feature": ("Who owns the module that got a new method for $ticket?",),
    "q_total": ("How many tests passed once the new method for $ticket was in?",),
    "q_passed": ("How many tests passed in the run after the fix for $ticket?",),
    "q_commit": ("What is the id of the commit for $ticket?", "Under which id was $ticket committed?"),
    "q_since": ("Since which day has the problem of $ticket been seen?", "When was $ticket's problem first seen?"),
    "q_days": ("How many days lay between the first sighting of $ticket's problem and the commit that fixed it?",),
    "q_first": ("Which of the two was committed first, $ticket or $other?",),
    "q_now": (
        "What is the $what of `$name` now?",
        "To what value is the $what of `$name` set at present?",
    ),
    "q_rise": ("By how much was the $what of `$name` changed when $who asked for it?",),
    "q_const": ("What is the $what of `$name`?", "What does `$name` have as its $what?"),
    "q_why": ("Why was the $what of `$name` set to $new?",),
    "q_keep": ("Why do we keep the $what of `$name` at $old?",),
    "q_code": ("Which error code does `$Err` carry?",),
    "q_runbook": ("Which runbook does `$name` name?",),
    "q_name": ("What is `$before` in `$name` called now?",),
    "q_author": ("Who wrote commit $hash?",),
    "q_when": ("On which day was commit $hash made?",),
    "q_port": ("On which port does `$name` listen on staging?",),
    "q_port_const": ("What is the $what of the service that listens on port $port on staging?",),
    "q_decision": ("Under which number is the decision on the $what of `$name` filed?",),
    "q_decided": ("On which day was it decided to keep the $what of `$name` at $old?",),
    "nowhere": (
        "What does the hosting of `$name` cost per month?",
        "Which database version does $project run on in production?",
        "Who approved the budget for `$name`?",
        "How many customers does $project have in all?",
        "Which cloud region does `$name` run in?",
        "What is $who's phone number?",
        "Which licence is $project released under?",
        "How many gigabytes of memory does the production node of `$name` have?",
        "In which week does $who go on holiday?",
        "What was the result of $who's last penetration test of `$name`?",
        "Which message broker does `$name` use in production?",
        "Which programming language was `$name` written in before it was Python?",
        "What is the service level agreement for the availability of `$name`?",
        "Which office does $who work from?",
    ),
}

REASONS = (
    "the partner's gateway blocks us for an hour beyond that",
    "the night job needs the remaining headroom",
    "the auditors asked for exactly that figure in spring",
    "the oldest client version cannot cope with anything else",
    "the replica falls behind otherwise",
    "the last load test broke right next to it",
    "the contract annex with the network operator names it",
    "support promised that figure to the two largest customers",
    "the small nodes run out of disk otherwise",
    "the message broker splits everything else in two",
    "the on-call rota cannot react any faster",
    "the vendor bills every further call twice",
    "the handheld devices reconnect in that rhythm",
    "the dashboard of the control room samples at that step",
    "the regulator checks it every quarter",
    "the failover drill showed that nothing else survives a switch",
    "the old importer still assumes it",
    "the insurer made it a condition",
)
