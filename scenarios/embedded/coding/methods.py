"""Bodies of the coding scenario's invented Python: methods.

Slots: `$ent` / `$Ent` the thing a module is about (snake, camel), `$other` another, `$num $num2 $text $text2 $state
$state2` its fields and states, `$BATCH_SIZE` and the like (see `KINDS`) constants, `$Err` its error class, `$attr` the dict of
rows, `$a` … `$f` local names, `$note` a comment, `$tail` the rest of the docstring.
"""

# ruff: noqa: E501  (a line of a form is a line of the code it makes)

from __future__ import annotations

from .more import MORE_METHODS

METHODS = (
    *MORE_METHODS,
    '''\
    def «load|fetch|find|require»_«$ent|${ent}_by_$text|${state}_$ent|${ent}_${verb}_target»(self, ${ent}_id: str, *, $flag: bool = False) -> $Ent:
        """«Find|Look up» the $ent_word and «$verb it|ask the $other_word service to $verb it», «trying again|again and again» when «the peer|it» is slow.$tail"""
        $a = self._$attr.get(${ent}_id)
        if $a is None and «not $flag|not ($flag and self._lenient)»:
            raise $Err(f"no $ent {${ent}_id} «to $verb|in reach|on record»")
        # $note
        for $b in range(1, $MAX_ATTEMPTS + 1):
            try:
                return self._$verb($a, $b)
            except TimeoutError:
                self._log.warning("$event «attempt|try|round» %d of %d for %s", $b, $MAX_ATTEMPTS, ${ent}_id)
                self._sleep($b * $BACKOFF_MS / 1000)
        raise $Err(f"gave up on $ent {${ent}_id} after {$MAX_ATTEMPTS} «attempts|tries»")
''',
    '''\
    def «sum|total|count|weigh»_${num}_«by_$text|of_$others|per_$text»(self, ${others}: Iterable[$Other], since: datetime) -> dict[str, int]:
        """«Sum up|Count|Add together» $num of «the|all» ${other_word}s changed «since then|since a given time», by $text, largest first.$tail"""
        $a: dict[str, int] = defaultdict(int)
        for $other in $others:
            if $other.updated_at < since «or $other.$text is None|or not $other.$text|and not $other.$num»:
                continue
            «$a[$other.$text] += $other.$num|$a[$other.$text] = max($a[$other.$text], $other.$num)»
        $b = sum($a.values())
        self._metrics.gauge("$event", $b, «shard=self._shard|unit="$num"|source=self._name»)
        if $b > $QUEUE_DEPTH:
            # $note
            self._log.info("$event above %d: %d over %d $others", $QUEUE_DEPTH, $b, len($a))
        return dict(sorted($a.items(), key=lambda pair: (-pair[1], pair[0])))
''',
    '''\
    def «chunk|split|pack»_«$ents|${state}_$ents|by_$num|by_$text»(self, $a: Sequence[$Ent]) -> Iterator[list[$Ent]]:
        """«Cut|Split» the ${ent_word}s into lists that «stay under|respect» the payload limit«, in order|».$tail"""
        $b: list[$Ent] = []
        $c = 0
        for $ent in $a:
            if $b and ($c + $ent.$num > $MAX_PAYLOAD_KB * «1000|1024» or «len($b) >= $BATCH_SIZE|$ent.$text != $b[-1].$text»):
                yield $b
                $b, $c = [], 0
            $b.append($ent)
            $c += $ent.$num
        # $note
        if $b:
            yield $b
''',
    '''\
    def «attach|assign|book|link»_«$other|${other}_to_$ent|$num|${state2}_$other»(self, ${ent}_id: str, ${other}_id: str, $num: int) -> $Ent:
        """«Attach|Link» the $ent_word to one $other_word and «add to its $num|make it $state2», under a lease.$tail"""
        with self._lock.hold(f"$ent:{${ent}_id}", seconds=$LEASE_S):
            $a = self._load(${ent}_id)
            if $a.state «not in {"$state", "$state2"}|== "$state2"|!= "$state"»:
                raise $Err(f"$ent {${ent}_id} is {$a.state}, «cannot $verb it|not open|wanted $state»")
            $b = replace($a, state="$state2", $num=$a.$num + $num, ${other}_id=${other}_id)
            # $note
            self._$attr[${ent}_id] = $b
            self._journal.append(("$verb", ${ent}_id, $num, self._clock.now()))
        return $b
''',
    '''\
    def «list|page|browse»_«$ents|by_$text|${state}_$ents|${ents}_by_$num»(self, $text: str | None = None, *, after: str = "", limit: int = $PAGE_LIMIT) -> Page[$Ent]:
        """«List|Page through» the ${ent_word}s, «optionally|if asked» only those of one $text, after a given id.$tail"""
        $a = sorted(self._$attr.values(), key=lambda $ent: ($ent.«$num|updated_at|$num2», $ent.id))
        $b = [$ent for $ent in $a if $text is None or $ent.$text == $text]
        $c = next((at + 1 for at, $ent in enumerate($b) if $ent.id == after), 0)
        $d = $b[$c : $c + min(limit, $PAGE_LIMIT)]
        # $note
        return Page(rows=$d, next=$d[-1].id if $c + len($d) < len($b) «and $d |»else "", total=len($b))
''',
    '''\
    def «compare|pair|resembles»_«$ents|by_$text|by_$num|${state}_$ents»(self, $a: $Ent, $b: $Ent) -> tuple[bool, int]:
        """«Say whether|Tell if» two ${ent_word}s «are close enough|belong together», and their shard.$tail"""
        if $a.$text != $b.$text «or $a.state == "$state"|and not self._${flag}|or $b.state == "$state2"»:
            return False, 0
        $c = abs($a.$num - $b.$num)
        $d = («$a.$num2 + $b.$num2|$a.$num2 * 31 + $b.$num2») % $SHARDS
        # $note
        return «$c <= $DRIFT_LIMIT_MS|$c * 2 < $DRIFT_LIMIT_MS|0 < $c <= $DRIFT_LIMIT_MS», $d
''',
    '''\
    async def «refresh|pull|gather»_«$ents|all_$ents|${state}_$ents|many»(self, $a: Sequence[str]) -> list[$Ent]:
        """«Fetch|Get» many ${ent_word}s at a time; those that «the peer refuses|fail» are «logged and left out|skipped».$tail"""
        $b = asyncio.Semaphore($POOL_SIZE)

        async def $c(${ent}_id: str) -> $Ent | None:
            async with $b:
                try:
                    return await self._«remote|upstream|backend».$verb(${ent}_id, timeout=$TIMEOUT_S)
                except $Err as error:
                    self._log.warning("$event: %s «skipped|left out|not taken» (%s)", ${ent}_id, error.code)
                    return None

        # $note
        $d = await asyncio.gather(*($c(${ent}_id) for ${ent}_id in $a))
        return [$ent for $ent in $d if $ent is not None]
''',
    '''\
    def «parse|read|accept»_«row|line|${ent}_row|$text»(self, row: Mapping[str, str], line: int) -> $Ent:
        """«Read|Make» one $ent_word from a row of «the export|their file», «or|and» say what is wrong with it.$tail"""
        $a = {key.strip().lower(): value.strip() for key, value in row.items() if value}
        for $b in ("$text", "$num", "«$text2|$num2»"):
            if $b not in $a:
                raise $Err(f"line {line}: «column|field» {$b!r} is «missing|empty|not there»")
        try:
            $c = int($a["$num"].replace(",", ""))
        except ValueError:
            raise $Err(f"line {line}: $num {$a['$num']!r} is no number") from None
        if not 0 <= $c <= $MAX_PAYLOAD_KB * «100|1_000|1024»:
            # $note
            raise $Err(f"line {line}: $num {$c} is out of range")
        return $Ent(id=$a.get("id", f"$ent-{line:06d}"), $text=$a["$text"], $num=$c, state="$state")
''',
    '''\
    def «sweep|expire|drop|retire»_«stale|${state2}_$ents|$ents|old_$ents»(self, now: datetime) -> int:
        """«Drop|Put away» ${ent_word}s that «nobody touched|have not changed» for too long; «returns|gives back» how many.$tail"""
        $a = now - timedelta(hours=$STALE_AFTER_H)
        $b = [key for key, $ent in self._$attr.items() if $ent.updated_at < $a and $ent.state «!= "$state"|== "$state2"»]
        for $c in $b[:$BATCH_SIZE]:
            $d = self._$attr.pop($c)
            self._journal.append(("$verb", $c, $d.$num, now))
        # $note
        if len($b) > $BATCH_SIZE:
            self._log.info("$event: %d $ents left for the next «round|run|pass»", len($b) - $BATCH_SIZE)
        return min(len($b), $BATCH_SIZE)
''',
    '''\
    def «price|score|rate|charge»_«$ent|${ent}_by_$text|$num|${state}_$ent»(self, $ent: $Ent, $a: Mapping[str, int]) -> int:
        """«What|How much» the $ent_word «costs|counts for», by its $text and state.$tail"""
        $b = $a.get($ent.$text, «1|0|10»)
        $c = $ent.$num * $b
        match $ent.state:
            case "$state":
                $c += $GRACE_MINUTES
            case "$state2" if $ent.$num2 > $WARN_AT_PERCENT:
                $c -= $c * $ent.$num2 // «100|1_000|360»
            case _:
                # $note
                $c = max($c, $GRACE_MINUTES)
        return «$c|max(0, $c)|round($c / 5) * 5|$c - $c % 10»
''',
    '''\
    def «diff|reconcile|match»_«$others|with_$others|by_$text|against_$others»(self, $a: Iterable[$Ent], $b: Iterable[$Other]) -> list[Difference]:
        """«Compare|Hold» our ${ent_word}s «with|against» their ${other_word}s by $text, worst difference first.$tail"""
        $c = {$ent.$text: $ent for $ent in $a}
        $d: list[Difference] = []
        for $other in $b:
            $e = $c.pop($other.$text, None)
            if $e is None:
                $d.append(Difference($other.$text, "«only theirs|unknown to us|no $ent»", $other.$num))
            elif abs($e.$num - $other.$num) > $DRIFT_LIMIT_MS:
                # $note
                $d.append(Difference($other.$text, "$num «differs|is off|disagrees»", $other.$num - $e.$num))
        $d.extend(Difference(key, "«only ours|no $other|unmatched»", $f.$num) for key, $f in $c.items())
        return sorted($d, key=lambda one: abs(one.amount), reverse=True)[:$PAGE_LIMIT]
''',
    '''\
    def «check|validate|review»_«$ent|${state}_$ent|$text|before_$verb»(self, $a: $Ent) -> Decision:
        """«Decide|Say» whether a $ent_word may «go on|be released|pass»; never raises.$tail"""
        $b: list[str] = []
        if $a.$num > $QUEUE_DEPTH:
            $b.append(f"$num {$a.$num} is over {$QUEUE_DEPTH}")
        if not $a.$text «or len($a.$text) > 32|or $a.$text.isspace()|or $a.$text == "unknown"»:
            $b.append("$text is «missing|unusable|not set»")
        if $a.state == "$state" and $a.$num2 < $GRACE_MINUTES:
            # $note
            $b.append("a $state $ent needs more $num2")
        return Decision(ok=not $b, reasons=tuple($b), checked_at=self._clock.now())
''',
    '''\
    def «cached|remember|memo»_«$ent|$text|by_$text|${state}_$ent»(self, $a: str, $b: Callable[[], $Ent]) -> $Ent:
        """«Return|Give» the $ent_word from memory«, or make it|» and «push out|forget» the oldest when full.$tail"""
        $c = self._clock.monotonic()
        $d = self._$attr.get($a)
        if $d is not None and $c - self._stored_at[$a] < $CACHE_TTL_S:
            self._metrics.count("$event.hit", «kind="$ent"|shard=self._shard|state=$d.state»)
            return $d
        $e = $b()
        if len(self._$attr) >= $QUEUE_DEPTH:
            # $note
            $f = min(self._stored_at, key=self._stored_at.__getitem__)
            del self._$attr[$f], self._stored_at[$f]
        self._$attr[$a], self._stored_at[$a] = $e, $c
        return $e
''',
    '''\
    def «spread|balance|assign_lanes»_«$ents|by_$num|for_$others|${state}_$ents»(self, $a: Sequence[$Ent], $b: int) -> dict[str, list[$Ent]]:
        """«Spread|Distribute» the ${ent_word}s over lanes so that $num is «even|balanced».$tail"""
        $c: dict[str, list[$Ent]] = {f"lane-{at}": [] for at in range(min($b, $SHARDS))}
        $d = dict.fromkeys($c, 0)
        for $ent in sorted($a, key=lambda one: «-one.$num|(-one.$num, one.$text)|(one.$text, -one.$num2)»):
            $e = min($d, key=lambda name: ($d[name], name))
            # $note
            if $d[$e] + $ent.$num > $QUEUE_DEPTH * «10|100|1_000»:
                self._log.info("$event: no lane for $ent %s", $ent.id)
                continue
            $c[$e].append($ent)
            $d[$e] += $ent.$num
        return $c
''',
    '''\
    def «export|write|dump»_«$ents|csv|${state}_$ents|for_$others»(self, path: Path, $a: Iterable[$Ent]) -> int:
        """«Write|Export» the ${ent_word}s to a file that is «whole or not there|never half written»; returns the rows.$tail"""
        $b = 0
        with path.with_suffix(".part").open("w", newline="", encoding="utf-8") as file:
            $c = csv.writer(file, delimiter="«;|,|\\t»")
            $c.writerow(["id", "$text", "$num", "state", "$num2"])
            for $ent in $a:
                $c.writerow([$ent.id, $ent.$text, $ent.$num, $ent.state, $ent.$num2])
                $b += 1
                if $b % $BATCH_SIZE == 0:
                    file.flush()
        # $note
        path.with_suffix(".part").replace(path)
        self._log.info("$event: %d $ents «written|exported|handed over» to %s", $b, path.name)
        return $b
''',
)
