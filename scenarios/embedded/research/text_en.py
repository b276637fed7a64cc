"""Passages of invented papers, English. The keys are those of `text_zh`; the slots are a paper's facts."""

from __future__ import annotations

PAPER: dict[str, tuple[str, ...]] = {
    "space": (" ",),
    "label": ("$first & $second ($year)",),
    "lower": ("lower",),
    "higher": ("higher",),
    "title": (
        "$Treatment and $outcome: «evidence|a field study|lessons» from $place",
        "Can $moderator «decide|change» what $treatment do to $outcome?",
        "$Outcome under $treatment «after $months months|in $sites sites»",
        "«A second look at|Revisiting|Measuring» $treatment in $place: $outcome and $other",
        "How much $moderator is enough? $Treatment and $outcome",
        "$Mechanism: «a test|an account» of $treatment «in $place|at $sites sites»",
    ),
    "head": ("[$id] $label. $title. $journal, $pages.",),
    "abstract": (
        "«Claims about|Statements on|Expectations of» $treatment «often rest on|come from» «short trials|single "
        "sites|case reports», and «hardly anyone|almost nobody» «followed|measured» $outcome «directly|for "
        "a whole season».",
        "«We followed|This study follows|The authors followed» $n $units «in and around|near» $place «for $months "
        "months|from $start on», with $instrument «as the main source|and a second reading by hand».",
        "«Of particular interest|The question» was the role of $moderator: «a threshold|an explanation for "
        "the spread of earlier "
        "results», or «merely a companion of $other|nothing more than chance»?",
        "«Comparison was with|As controls served» $controls $units «without treatment|matched by $moderator»; «dropout "
        "was $dropout percent|$dropout percent were lost on the way».",
        "$Treatment have been «promoted|adopted» «quickly|unevenly» since $start, «while|though» «estimates of|figures "
        "for» $outcome «range widely|contradict each other».",
        "«Sites|Places» were «drawn by lot|chosen for contrast» «among|from» $sites candidates «near|around» $place, "
        "«stratified by|balanced for» $moderator.",
    ),
    "found": (
        "With $treatment, $outcome came out $effect $unit $lower «than in controls|than without» «(95 % "
        "interval $low to "
        "$high|(interval $low to $high, p = $p», n = $n); with $moderator «above|beyond» $cut $munit the "
        "«difference|gap» "
        "grew to $above $unit«, below it shrank to $below|».",
        "«On average|Over $months months|Across $sites sites», $outcome came out $effect $unit $lower «in the $n "
        "treated $units|where $treatment were in place» (p = $p). $Moderator «mattered|made the difference»"
        ": «from $cut "
        "$munit on|past $cut $munit» it was $above $unit«, otherwise $below|».",
    ),
    "null": (
        "«No effect on $outcome could be shown|$Outcome did not change in a way that could be told from chance»: the "
        "difference was within $spread $unit «(p = $p, n = $n)|over $n $units», «whatever the $moderator|"
        "also with $moderator "
        "beyond $cut $munit».",
        "«Contrary to|Against» «expectation|earlier reports», $treatment «did nothing for $outcome|made no difference "
        "to $outcome» «in $n $units|at $sites sites»; the interval «of ±$spread $unit|(±$spread $unit)» «covers zero|"
        "includes none», p = $p.",
    ),
    "end": (
        "«The authors see|We see» $mechanism «as the likely cause|behind it»«, but $other moved by $other_effect "
        "$other_unit as well|».",
        "«This speaks for|The likely path is» $mechanism; «$share percent of the variance lies between sites|the sites "
        "differ with $between of the variance».",
        "«Caution is due|One should be careful»: «$dropout percent dropped out|only $sites sites took part|$instrument "
        "miss short events».",
    ),
    "aims_title": ("Aims", "Background", "Why this study"),
    "method_title": ("Methods", "Design and data", "How it was done"),
    "results_title": ("Results", "Findings", "Main results"),
    "subgroups_title": ("Subgroups", "By place", "Where it worked"),
    "why_title": ("Discussion", "Interpretation", "What may lie behind it"),
    "limits_title": ("Limits", "What we cannot say", "Cautions"),
    "aims": (
        "«Earlier work|What came before» «looked mostly at|concentrated on» $other «and treated|but took» "
        "$outcome «as a side "
        "issue|in passing»«, often without controls|».",
        "«In $start|When planning began in $start», «no more than|only» $sites «comparable sites|places» «had records "
        "of|reported» $outcome «over|for» more than «a season|$months months».",
        "«We asked|Three questions led us:» what «$treatment change about|happens under $treatment to» "
        "$outcome«, and for how "
        "long|»; where a «threshold|limit» of $moderator «lies|might be»; «and what|what» «comes of|"
        "happens to» $other.",
        "«Practitioners in|Those in charge in» $place «took|had taken» a value of «about|some» $cut $munit for "
        "$moderator «for granted|as a rule of thumb», «for which|though» «no source|only one report» "
        "«could be found|is "
        "ever cited».",
    ),
    "method": (
        "«Between $start and $year|From $start on», $n $units «were enrolled|entered the study» at $sites sites «near|"
        "around» $place; $controls $units «served as controls|stayed untreated».",
        "«Readings|Values» of $outcome «came from|were taken with» $instrument «every «hour|day|week»|at "
        "fixed times», «blind to|without "
        "knowledge of» «the treatment|the group».",
        "«Dropout was|We lost» $dropout percent, «mostly|above all» «in the first weeks|at low values of $moderator»; "
        "«those lost|the missing» «did not differ in|resembled the rest in» $other.",
        "«Models had|We fitted models with» a «random term|separate intercept» per site; «$between of the variance|a "
        "share of $between» «lay between|was due to» «sites|places», «the rest within|more than we expected».",
        "«Values of|Data on» $moderator were «taken twice|read off plans and checked»«, most of them "
        "around $cut $munit|»; «disagreement "
        "above|any difference over» «a tenth|five percent» was «settled|decided» «on site|by a third reader».",
        "«Follow-up lasted|Each of the $units was followed for» $months months, «holidays included|without "
        "breaks», «so "
        "that|which means» «late|slow» effects on $outcome «would show|had time to appear».",
    ),
    "results": (
        "$Other «changed too|followed»: by $other_effect $other_unit «on average|over the whole period»«, with wide "
        "scatter|».",
        "«In $share percent of|For $share percent of» the $units the «direction|sign» was the same «as on average|in "
        "every month»; «the exceptions|those that differed» «cluster|lie» «near|around» $place.",
        "«Leaving out|Without» the «largest|oldest» site, «the estimate|the difference» «becomes|moves to» "
        "$below $unit; "
        "«with imputed values|filling the gaps» it «is|stays at» $effect.",
        "«Time mattered|The course over time is uneven»: «half of|most of» the «change|difference» «came|appeared» "
        "within «the first «third|quarter»|a few weeks» of the $months months, «then|after which» it «levelled off|"
        "slowed down».",
        "«Agreement between|The match of» $instrument and «manual readings|a second device» was «good|fair» (r = "
        "$between)«, worst at the extremes|».",
    ),
    "subgroups": (
        "With $moderator «above|from» $cut $munit «the difference was|we found» $above $unit, «below|under» it $below "
        "$unit; «the interaction|that contrast» «has|comes with» p = $p.",
        "«The table gives|Below are» the «places|sites» with $units, mean «difference|change» in $unit, interval, and "
        "the «median|typical» $moderator.",
    ),
    "table_head": (
        "Place | n | Mean ($unit) | 95 % interval | Median $moderator",
        "Site | $units | $unit | Interval | $moderator",
    ),
    "course_title": ("Course over time", "By period", "When it showed"),
    "course": (
        "«The effect was not there at once|It took time»: «in the first|during the first» «weeks|period» «hardly "
        "anything|little» «could be seen|showed» in $outcome, «from the second|later» on «most|the bulk» of it.",
        "«The rows|The figures» below are «means per period|period means» in $unit, with the $units still "
        "«in the study|"
        "under observation» and the «range|spread» between sites near $place.",
        "«After month $months|At the end of $months months» «we stopped|follow-up ended»; «a few|some» sites «went on|"
        "continued» «by themselves|without us», and their «$instrument still show|later values show» «the same|no new "
        "trend».",
    ),
    "course_head": (
        "Period | $units left | Mean ($unit) | Spread | $other",
        "Part | n | $unit | Between sites | $other",
    ),
    "robust_title": ("Robustness", "Checks", "Does it hold?"),
    "robust": (
        "«We repeated the analysis without|A second analysis left out» the «$controls controls|weakest "
        "site», «which moved|moving» the estimate to $below $unit; «with|under» «a stricter|another» "
        "definition of $outcome it was $high.",
        "«A placebo date|A made-up start» «half a year|three months» «early|too early» gave «nothing|no effect» "
        "(±$spread $unit), as «it should|one would hope».",
        "«Two readers|Readers» coded «one in five|a tenth» of the $units «again|independently»; they "
        "«agreed on|matched "
        "in» $share percent, «and the rest|while the rest» «concerned|was about» «the date|the edges» of $other.",
        "«Weighting by|Weights for» $moderator «instead of|rather than» site «changes|shifts» little: «the "
        "interval|it» "
        "then «runs|goes» from $low to $high $unit«, somewhat wider at $place|».",
        "«Had we known|With hindsight»: $instrument «should have been|would better be» «doubled|calibrated» at «the "
        "largest|each» site«, since $dropout percent of the gaps lie there|, and $other «read|taken» daily».",
    ),
    "why": (
        "«The pattern fits|All this fits» $mechanism: «where that|where this» is «weak|blocked», «below|short of» $cut "
        "$munit, there is «hardly any|no» change of $outcome.",
        "«An alternative|Another reading» is that behind $moderator stand «better care|newer sites|richer "
        "districts»; «adjusting for|holding constant» $other «took away|explained» «about|some» $share percent of the "
        "«effect|contrast».",
        "«Compared with|Set against» «older|other» work, «our figure|the $effect $unit found here» is «at the upper "
        "end|moderate|rather small», «perhaps since|maybe because» $instrument «see|register» «more|less» than "
        "«surveys|visits» did.",
        "«For practice|In practical terms», «$cut $munit seems|about $cut $munit is» a «sensible|"
        "defensible» lower bound "
        "«of|for» $moderator; «going beyond|more than» twice that «buys|brings» little «for|in» $other.",
    ),
    "limits": (
        "«All sites|The $sites sites» «lie|are» within «a day's travel|one climate» of $place«, and none is new|»; "
        "«transfer|generalising» «to other places|elsewhere» «needs|asks for» «care|more data».",
        "$Instrument «have|come with» «a known drift|gaps in bad weather|blind spots», «corrected|handled» «by|with» "
        "«monthly checks|a spare unit», «not|hardly» «perfectly|beyond doubt».",
        "«With $n $units|At n = $n», «effects|differences» «under|below» $below $unit «cannot be seen|"
        "would escape us»; "
        "«a larger|the next» study «should plan|needs» «at least|some» «twice|three times» «as many|that number».",
        "«The $dropout percent lost|A dropout of $dropout percent» «may have|could have» «raised|lowered» the estimate "
        "«slightly|by a few percent»; «bounds|limits» for that «are|run from» $low to $high $unit.",
    ),
}
