"""What the person and the assistant say in the research scenario, English. The keys are `speech_zh`'s."""

from __future__ import annotations

SPEECH: dict[str, tuple[str, ...]] = {
    "system": (
        "You help $who with a review of the evidence on $question. You can search a library of papers, open one by its "
        "id, and take notes that last.\n\n"
        "- Rest every statement on a paper, named by its authors and year; give sample sizes and intervals.\n"
        "- Where studies disagree, say so and say what might explain it. Do not average over a disagreement.\n"
        "- Keep the criteria of the review and the working hypothesis as they were last agreed.\n"
        "- Return to earlier topics when asked, with what was said about them.\n"
        "- Say plainly what the library does not show.",
    ),
    "explore": (
        "«Let us turn to|Next I want to understand|Now to» $topic. «What is known?|What have people found?|Is there "
        "anything solid?» «I would have guessed at $moderator before anything else.|My "
        "hunch is that it hangs on $moderator, but I have no numbers.|A colleague doubts any role of $moderator.»",
        "«A new side of it|Something we have not touched»: $topic. «Could you see what there is|Please search broadly "
        "first», and open what looks «strongest|best»? I care about «sample sizes|the threshold of $moderator|studies "
        "with controls» «above all|».",
        "«What does|What can» $moderator do «for|to» $outcome? «Please look for studies with controls.|I would like "
        "the two best studies, read whole.» «Do not spare me the contradictions.|»",
    ),
    "deeper": (
        "«Stay with|I want more on» $topic «for a moment|». Open $label«, please|»: how did they measure it, and «what "
        "about dropout|how sure are they»?",
        "$label «interests me|keeps me thinking». «Can you read it whole|Please open it» and tell me «where the effect "
        "comes from|what the subgroups say»?",
    ),
    "disagree": (
        "$label and $second «do not seem to agree|read very differently to me» on $topic. «Why?|What "
        "explains it?» «Is it "
        "the sample, the site or the instrument?|Could $moderator explain it?»",
        "«Put|Could you put» $label next to $second«, please|». «On $topic they seem to say opposite things|I cannot "
        "reconcile them on $topic»: «which one would you trust more|where does the difference come from»?",
    ),
    "criterion_set": (
        "«Before we go on|One thing for the protocol»: let us fix the $crit at $value$cunit. «My co-author insists on "
        "it.|Anything else would be hard to defend.|That is what similar reviews use.» «Please note it, "
        "and see what it "
        "means for $topic.|Note that down and check $topic against it.»",
    ),
    "criterion_change": (
        "I have to «revise|change» the $crit: «not $old$cunit, but|instead of $old$cunit now» $value$cunit. «The first "
        "version left too little.|My supervisor was not happy with it.|After what we read, the old one "
        "makes no sense.» "
        "«Please update the notes, and look at $topic again with that in mind.|Does that change what we "
        "say on $topic?»",
        "«Correction for the protocol|I changed my mind»: the $crit «is|becomes» $value$cunit«, no longer "
        "$old$cunit|». "
        "«Reviewers would ask.|I slept on it.» «What falls out on $topic?|Please search $topic once more under that "
        "rule.»",
    ),
    "hypothesis_set": (
        "«Time for|Let me try» a working hypothesis: the effect on $outcome «appears|shows» only with $moderator "
        "above $value $munit. «Note it as it stands.|Please write that down.» «What speaks against it?|"
        "Find me what would "
        "refute it.»",
    ),
    "hypothesis_change": (
        "«I no longer believe|We should give up» the $old $munit. «Let the hypothesis say|New version»: "
        "$outcome changes "
        "only with $moderator above $value $munit. «Please note the change|Update the note» and «look for evidence on "
        "both sides|check it against what we have».",
    ),
    "back": (
        "«Back to|Let us go back to|I would like to return to» $topic. «As we said about it, $label "
        "carries most of the "
        "weight.|We had left it with $label.|Earlier you named $label as the main study.» «Is there anything newer or "
        "larger|What else is there» «on $moderator|that contradicts it»?",
        "«As we said about|When we talked about» $topic«, a while ago|», $label was the study to beat. "
        "«After the detour I "
        "see it differently.|With what we know now, does that still hold?» Please search again«, with "
        "$moderator in the "
        "query|» and compare.",
    ),
    "searching": (
        "«Let me search for|Searching for|I look for» $topic.",
        "«I start with a broad query|First the library» on $outcome.",
        "«A search|One query» on $moderator «should show it|first».",
    ),
    "opening": (
        "«These two look strongest.|I read these two whole.|Opening the two that differ most.»",
        "«Two of them are worth reading|Both deserve a full reading».",
    ),
    "opening_one": ("«Opening|Let me read» $label.", "$label «deserves|is worth» a full reading."),
    "noting": ("«I note that.|A note on this.|Noting it.»", "«For the record.|So that it is not lost.|»"),
    "note_topic": (
        "$topic: $label (n = $n) «is the main study|carries most weight»; threshold of $moderator near $cut $munit; "
        "dropout $dropout percent.",
        "On $topic «see|rest on» $label, n = $n, $months months of follow-up, «measured with|from» $instrument.",
    ),
    "note_criterion": ("Protocol: $crit is $value$cunit.", "Criterion agreed: $crit = $value$cunit."),
    "note_hypothesis": ("Hypothesis: effect on $outcome only with $moderator above $value $munit.",),
    "note_saved": ("Note $number saved on $date.",),
    "answer_open": (
        "«In short|The short answer»: the evidence on $topic is «thin but usable|uneven|better than I "
        "expected», and it "
        "«points|leans» towards a role of $moderator«, with exceptions|».",
        "On $topic «I found|the library has» $count studies «that measure it directly|of some weight»; «I "
        "read|I opened» "
        "the ones below whole.",
        "«There are $count studies|$count studies bear on this». «They do not tell one story|The picture "
        "is mixed», «so I "
        "take them one by one|let me go through the main ones».",
    ),
    "answer_paper": (
        "$label «followed|studied» $n $units «near|around» $place «over $months months|since $start», with "
        "$instrument. "
        "«Outcome first|The main result»: $outcome $effect $unit $lower than in controls, interval $low to "
        "$high. «What "
        "convinces me is|In its favour speaks» the «comparison with $controls controls|blind reading»; "
        "«what worries me "
        "is|against it» a dropout of $dropout percent. With $moderator «above|from» $cut $munit the figure "
        "is $above $unit, "
        "below it $below.",
        "«The strongest single piece is|Most weight goes to» $label: $sites sites, n = $n, $months months. «They "
        "report|Reported is» $effect $unit ($outcome, $lower), p = $p. «The contrast by|Splitting by» "
        "$moderator at $cut "
        "$munit «is larger than I would expect|looks real», $above against $below $unit. «They credit|"
        "Their explanation "
        "is» $mechanism, «which I find plausible|though $share percent of the variance lies between sites».",
    ),
    "answer_null": (
        "$label «is the sobering one|goes the other way»: n = $n, $months months, and «no effect on|no "
        "change of» $outcome "
        "beyond ±$spread $unit (p = $p). «The study is|It is» «large enough|not large, but careful», "
        "«measured with|based "
        "on» $instrument«, dropout $dropout percent|». «Their sites|The $sites sites» near $place may lie below the "
        "threshold, yet they «saw nothing|found the same» with $moderator past $cut $munit.",
    ),
    "answer_hit": (
        "$label «adds a little|is weaker|has something to add» ($n $units, $outcome).",
        "«From the abstract only|Not read whole»: $label, «n = $n|$n $units near $place», «with "
        "$instrument|over $months "
        "months».",
        "«Worth keeping|On the list»: $label, because it «reports|has» $other as well.",
    ),
    "answer_compare": (
        "«The two differ in three ways.|I see three differences.» «Sample|First, size»: $n against $n2 $units. "
        "«Duration|Second, follow-up»: $months against $months2 months. «Place|Third, where»: $place against $place2. "
        "«If I had to choose|Asked to choose», I would «lean on|trust» $better «for $outcome|», since «its sample is "
        "larger|it has more cases». The disagreement itself «may come from|fits» $mechanism: it «needs|asks for» "
        "more $moderator than «one of them|the smaller one» had.",
    ),
    "answer_recall": (
        "As we said about $topic, $label (n = $n, $effect $unit) set the mark, with a threshold of $moderator near "
        "$cut $munit. «That still stands|I would not give that up», «but|and» the newer hits «narrow it|"
        "blur it a little».",
        "«To pick up the thread|Where we left $topic»: $label «had|came with» n = $n and a dropout of "
        "$dropout percent. "
        "«Nothing since then overturns it|Only part of it survives the comparison».",
    ),
    "answer_criterion": (
        "«Noted|Done»: $crit $value$cunit. «On $topic|For $topic» «that removes the small studies and "
        "leaves the main one "
        "in place|the picture changes less than one might fear», «and I would say so in the protocol|as far as the "
        "abstracts tell».",
    ),
    "answer_hypothesis": (
        "The hypothesis is noted with $value $munit. «It is refutable, which I like|It can be refuted»: one good study "
        "with a clear effect «below|under» that value would «end|sink» it. «So far|Among what we read» "
        "«none is quite that "
        "clear|the closest is the subgroup analysis above».",
    ),
    "answer_detail": (
        "«A word on|About» the method of $label, since much hangs on it: «$instrument were read|the "
        "readings came» «without "
        "knowledge of the group|blind»«, which not every study here can say|». «Its weak spot is|What I "
        "hold against it is» "
        "the loss of $dropout percent over $months months; «if all of those had gone|should the missing have gone» the "
        "other way, the figure would «move towards|come near» $below $unit. «Between sites|Across its "
        "$sites sites» the "
        "spread is considerable ($between of the variance), «so the mean says little about any one place|and $place is "
        "not typical of the rest».",
        "«The subgroups of|Looking into the subgroups of» $label «help|are instructive»: «with|given» "
        "$moderator past $cut "
        "$munit they have $above $unit, otherwise $below. «That is a contrast within one study|I trust "
        "that more than a "
        "comparison across studies», «but|though» it was «not planned|one of several» «and the places differ in $other "
        "too|, and p = $p for the whole is no licence for every part». «They themselves|The authors» "
        "«point to|speak of» "
        "$mechanism.",
    ),
    "answer_end": (
        "«What I would not conclude|What is missing»: that $moderator alone does it. «$Mechanism2 could|Something like "
        "$mechanism2 might» «produce the same pattern|lie behind both». «Shall I look for that next?|I can "
        "search for that "
        "if you like.»",
        "«My confidence|How sure I am»: moderate for the direction, low for the size. «A study with|It would take» "
        "«randomised|assigned» $moderator «would settle it|to settle it». «Tell me if you want the tables "
        "side by side.|»",
        "«Next step|If you agree»: «compare the subgroups by place|look at studies with longer follow-up», «before we "
        "settle on a number|and only then revise the hypothesis».",
    ),
    "q_n": ("How large was the sample of $label?", "How many $units did $label follow?"),
    "q_dropout": ("What was the dropout in $label?",),
    "q_instrument": ("With which instrument did $label measure $outcome?",),
    "q_months": ("For how many months did $label follow the $units?",),
    "q_larger": ("Which study had the larger sample, $label or $second?",),
    "q_sum": ("How many $units did $label and $second study together, controls not counted?",),
    "q_older": ("Which study began earlier, the one by $first1 or the one by $first2?",),
    "q_span": ("How many years lie between the publication of $label and of $second?",),
    "q_main": ("Which sample size did the study have that we named as the main one when we returned to $topic?",),
    "q_noted": ("On which day did we note the $crit of $value$cunit?",),
    "q_crit": ("What is the $crit of the review now?", "At what do we have the $crit at present?"),
    "q_hyp": ("Above which value of $moderator does the hypothesis on $outcome expect an effect now?",),
    "q_crit_old": ("What did we first fix as the $crit?",),
    "nowhere": (
        "Who funded the study by $label?",
        "Which statistics software did $label use?",
        "How often has $label been cited?",
        "At which university does $first1 work?",
        "What is the registration number of the study by $label?",
        "Which ethics committee approved $label?",
        "What did the instruments of $label cost?",
        "Who reviewed $label before it was printed?",
        "What is the e-mail address of $first1?",
        "In which language was $label first published?",
        "How old was $first1 when the study began?",
        "Where are the raw data of $label archived?",
    ),
}
