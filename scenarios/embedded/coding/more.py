"""More bodies of invented Python, with the slots of `methods`: methods, and functions outside a class."""

# ruff: noqa: E501  (a line of a form is a line of the code it makes)

from __future__ import annotations

MORE_METHODS = (
    '''\
    def «receive|open|decode»_«signed|$ent|payload|signed_$ent»(self, $a: bytes, signature: str) -> $Ent:
        """«Accept|Take in» one $ent_word from the wire «if its signature is good|and check its signature».$tail"""
        if len($a) > $MAX_PAYLOAD_KB * 1024:
            raise $Err(f"$ent of {len($a)} bytes is over {$MAX_PAYLOAD_KB} KB")
        $b = hmac.new(self._secret, $a, "sha256").hexdigest()
        if not hmac.compare_digest($b, signature):
            # $note
            self._metrics.count("$event.bad_signature", «peer=self._name|kind="$ent"»)
            raise $Err("the signature does not «match|fit|belong to this $ent»")
        $c = json.loads($a)
        return $Ent(id=$c["id"], $text=$c["$text"], $num=int($c.get("$num", 0)), state=$c.get("state", "$state"))
''',
    '''\
    def «free|open|idle»_«windows|slots|gaps|${other}_gaps|times»(self, $a: datetime, $b: datetime) -> list[tuple[datetime, datetime]]:
        """«When|The times at which» no $ent_word is «open|in the way», in order.$tail"""
        $c = sorted((one.opens_at, one.closes_at) for one in self._$attr.values() if one.$text)
        $d: list[tuple[datetime, datetime]] = []
        $e = $a
        for $f, closes in $c:
            if $f - $e > timedelta(minutes=$GRACE_MINUTES):
                $d.append(($e, min($f, $b)))
            # $note
            $e = max($e, closes)
        if $b - $e > timedelta(minutes=«$GRACE_MINUTES|$GRACE_MINUTES»):
            $d.append(($e, $b))
        return $d
''',
    '''\
    def «summarise|digest|report»_«events|$verb|failures|day|$others»(self, events: Iterable[Event]) -> Summary:
        """«Count|Sum up» what happened to the ${ent_word}s, and «raise an alert|warn» when too many failed.$tail"""
        $a = Counter(event.kind for event in events if event.subject == "$ent")
        $b = $a["$verb"] + $a["«retried|$state|repeated»"]
        $c = $a["failed"] / $b if $b else 0.0
        if $c * 100 > $WARN_AT_PERCENT:
            self._alerts.raise_once("$event", f"{$c:.1%} of {$b} $ents failed", hold=$GRACE_MINUTES)
        # $note
        return Summary(total=$b, failed=$a["failed"], share=round($c, «3|4»), top=$a.most_common(«3|5|8»))
''',
    '''\
    def «reachable|walk|follow»_«from|$ents|links|$others|upstream»(self, ${ent}_id: str) -> list[str]:
        """«All|The» ids that «hang on|can be reached from» one $ent_word, nearest first.$tail"""
        $a, $b, $c = deque([${ent}_id]), {${ent}_id}, []
        while $a and len($c) < $QUEUE_DEPTH:
            $d = $a.popleft()
            $c.append($d)
            for $e in self._«links|edges|children|followers».get($d, ()):
                if $e not in $b «and $e != ${ent}_id|and $e in self._$attr»:
                    # $note
                    $b.add($e)
                    $a.append($e)
        return $c
''',
    '''\
    def «median|spread|profile»_«of_$num|$num|by_$num|${state}_$num»(self, $a: Sequence[int]) -> tuple[int, int, int]:
        """«Median, high value and outliers|Where the middle and the high end lie» of $num, and «count|report» them.$tail"""
        if not $a:
            return 0, 0, 0
        $b = sorted($a)
        $c = $b[min(len($b) - 1, len($b) * $WARN_AT_PERCENT // 100)]
        $d = $b[len($b) // 2]
        # $note
        $e = sum(1 for value in $b if value > $d * «2|3» + $DRIFT_LIMIT_MS)
        self._metrics.gauge("$event.median", $d, «unit="$num"|kind="$ent"»)
        return $d, $c, $e
''',
    '''\
    def «notify|tell|inform»_«recipients|owners|$others|about_$ent|on_$state»(self, $a: $Ent, recipients: Sequence[str]) -> int:
        """«Queue|Send» one message per recipient about a $ent_word, «but not|never» too many a day.$tail"""
        $b = self._templates[$a.state].format(id=$a.id, $text=$a.$text, $num=$a.$num)
        $c = 0
        for $d in dict.fromkeys(recipients):
            if self._sent_today[$d] >= $MAX_ATTEMPTS «or $d in self._muted|and $a.state != "$state"»:
                # $note
                self._log.info("$event: %s has had enough for today", $d)
                continue
            self._outbox.put($d, $b, deadline=self._clock.now() + timedelta(minutes=$GRACE_MINUTES))
            self._sent_today[$d] += 1
            $c += 1
        return $c
''',
    '''\
    def «admit|throttle|slow_down»_«peer|$verb|caller|by_$text|$others»(self, peer: str) -> None:
        """«Let a peer|Allow a peer to» $verb only so often; raises when «it must wait|it is too fast».$tail"""
        $a = self._clock.monotonic()
        $b = self._buckets.setdefault(peer, deque())
        while $b and $a - $b[0] > $LEASE_S:
            $b.popleft()
        if len($b) >= $PREFETCH:
            # $note
            $c = $LEASE_S - ($a - $b[0])
            raise $Err(f"{peer} may $verb «again|the next $ent» in {$c:.0f} s")
        $b.append($a)
''',
)

FUNCTIONS = (
    '''\
def «group|bucket|collect»_«$ents|by_$text|${ents}_by_state|$others»($a: Iterable[$Ent]) -> dict[str, list[$Ent]]:
    """«Group|Sort» the ${ent_word}s «by a key|into lists», «small|large» groups only.$tail"""
    $b: dict[str, list[$Ent]] = {}
    for $ent in $a:
        $b.setdefault($ent.«$text|state|$text2», []).append($ent)
    # $note
    return {key: rows for key, rows in sorted($b.items()) if len(rows) «<= $BATCH_SIZE|> 1|< $PAGE_LIMIT»}
''',
    '''\
def «stamp|checksum|tag»_«$text|$ent|${ent}_$text»($text: str, $num: int = $SHARDS) -> str:
    """«Normalise|Clean up» $text and append «a check number|two check digits».$tail"""
    $a = "".join(letter for letter in $text.upper() if letter.isalnum())
    $b = sum(«ord(letter)|int(letter, 36)» * (at % «7|9|11» + 1) for at, letter in enumerate($a))
    # $note
    return f"{$a}-{($b + $num) % «97|89|83»:02d}"
''',
    '''\
def «is_fresh|is_usable|may_wait»_«$ent|$state|$other»($a: $Ent, at: datetime) -> bool:
    """«Whether|True if» the $ent_word «can still be used|is young enough» at that time.$tail"""
    if $a.state in {"$state", "$state2"}:
        return $a.$num < $QUEUE_DEPTH
    $b = (at - $a.updated_at).total_seconds() / 3600
    # $note
    return $b < $STALE_AFTER_H «and bool($a.$text)|or $a.$num2 == 0|and $a.$num2 > 0»
''',
    '''\
def «build|make|restore»_«$ent|from_mapping|from_$other»($a: Mapping[str, object]) -> $Ent:
    """«Build|Restore» a $ent_word from «loose values|a mapping», refusing what lacks $num.$tail"""
    $b = {name: $a[name] for name in ("id", "$text", "$num") if name in $a}
    if len($b) < 3:
        raise $Err(f"a $ent needs id, $text and $num, not {sorted($a)}")
    # $note
    return $Ent(id=str($b["id"]), $text=str($b["$text"]), $num=int(str($b["$num"])), state="$state")
''',
    '''\
def «merge|overlay|combine»_«$ents|by_id|${state}_$ents|$others»($a: Sequence[$Ent], $b: Sequence[$Ent]) -> list[$Ent]:
    """«Merge|Lay» two lists of ${ent_word}s; the second «wins|has the last word».$tail"""
    $c = {$ent.id: $ent for $ent in $b}
    $d = [$c.pop($ent.id, $ent) for $ent in $a if $ent.$num «<= $PAGE_LIMIT|>= 0|< $PAGE_LIMIT»]
    # $note
    return $d + «sorted($c.values(), key=lambda one: one.$num)|[one for one in $c.values() if one.$text]»
''',
    '''\
def «steps|offsets|strides»_«$num|for_$ent|of_$num|$verb»($num: int, step: int = $BATCH_SIZE) -> range:
    """«Where|The offsets at which» to $verb when $num is taken in equal steps.$tail"""
    if $num < 0 «or step <= 0|or step > $PAGE_LIMIT»:
        raise ValueError(f"cannot $verb {$num} in steps of {step}")
    $a = -(-$num // step)
    # $note
    return range(0, $a * step, step)
''',
)
