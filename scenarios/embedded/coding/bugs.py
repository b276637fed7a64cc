"""The bugs of the coding scenario: a method with the wrong lines, the right lines, the test that shows it.

The slots are those of `methods`, and `$one`, `$two`, `$three` are numbers of the test (two = one + 1), `$method` the
name of the method once it is written.
"""

from __future__ import annotations

from typing import NamedTuple


class Bug(NamedTuple):
    """`before + wrong + after` is the method; `error` is what pytest prints at the failing line `>`."""

    symptom: str
    symptom_zh: str
    cause: str
    cause_zh: str
    before: str
    wrong: str
    right: str
    after: str
    test: str
    fails: str
    error: str


BUGS = (
    Bug(
        "one attempt too many goes out before it gives up",
        "放弃之前会多发一次请求",
        "the limit is compared with `>` where it has to be `>=`",
        "上限用了 `>` 比较，应该是 `>=`",
        '''\
    def «note|count|record»_failure«_of_$ent|_by_$text|»(self, ${ent}_id: str) -> int:
        """«Note|Count» a failure of one $ent_word; returns how many «are left|it may still have».$tail"""
        $a = self._failures[${ent}_id] + 1
''',
        "        if $a > $MAX_ATTEMPTS:\n",
        "        if $a >= $MAX_ATTEMPTS:\n",
        """\
            raise $Err(f"$ent {${ent}_id} is locked after {$a} failures")
        self._failures[${ent}_id] = $a
        return $MAX_ATTEMPTS - $a
""",
        "    $a = make_$role()\n    for _ in range($MAX_ATTEMPTS - 1):\n        $a.$method('$sample')\n",
        "    with pytest.raises($Err):\n        $a.$method('$sample')\n",
        "Failed: DID NOT RAISE <class '$package.$area.$name.$Err'>",
    ),
    Bug(
        "totals are a cent too low on long lists",
        "行数多的时候合计会少一分",
        "every row is cut with `int()` before the sum instead of rounding the sum once",
        "每一行先用 `int()` 截断再相加，而不是最后统一四舍五入",
        '''\
    def «total|sum|net»_$num«_at_rate|_of_$ents|»(self, $a: Sequence[$Ent], rate: float) -> int:
        """«Sum|Total of» $num of the ${ent_word}s at a rate, «never negative|rounded».$tail"""
''',
        "        $b = sum(int($ent.$num * rate) for $ent in $a)\n",
        "        $b = round(sum($ent.$num * rate for $ent in $a))\n",
        """\
        self._metrics.gauge("$event.total", $b, rows=len($a))
        return max($b, 0)
""",
        "    $a = [make_$ent($num=$one), make_$ent($num=$three)]\n",
        "    assert make_$role().$method($a, 0.5) == $two\n",
        "assert $one == $two",
    ),
    Bug(
        "the night run dies on rows that came in over the old interface",
        "夜间任务遇到老接口写入的数据就会中断",
        "`datetime.now()` has no time zone while the rows have one",
        "`datetime.now()` 不带时区，而数据行带时区",
        '''\
    def «overdue|stale|late»_«$ents|by_$text|${state}_$ents»(self, $a: Iterable[$Ent]) -> list[$Ent]:
        """«Pick|List» the ${ent_word}s that are «overdue|too old» and have a $num.$tail"""
''',
        "        $b = datetime.now() - timedelta(hours=$STALE_AFTER_H)\n",
        "        $b = datetime.now(UTC) - timedelta(hours=$STALE_AFTER_H)\n",
        """\
        return [$ent for $ent in $a if $ent.updated_at < $b and $ent.$num > 0]
""",
        "    $a = make_$ent(updated_at=datetime(2024, 3, 9, tzinfo=UTC), $num=$one)\n",
        "    assert make_$role().$method([$a]) == [$a]\n",
        "TypeError: can't compare offset-naive and offset-aware datetimes",
    ),
    Bug(
        "the last page of the list never arrives",
        "列表最后一页永远取不到",
        "the range stops one page early",
        "区间少走了一页",
        '''\
    def «pages|slices|parts»_of_«$ents|$others|${state}_$ents»(self, $a: Sequence[$Ent]) -> Iterator[Sequence[$Ent]]:
        """«Yield|Go through» the ${ent_word}s page by page.$tail"""
''',
        "        for $b in range(0, len($a) - $PAGE_LIMIT, $PAGE_LIMIT):\n",
        "        for $b in range(0, len($a), $PAGE_LIMIT):\n",
        """\
            $c = $a[$b : $b + $PAGE_LIMIT]
            self._log.debug("$event %d of %d", $b, len($a))
            yield $c
""",
        "    $a = [make_$ent(id=f'$ent-{at}') for at in range($two)]\n",
        "    assert sum(map(len, make_$role().$method($a))) == $two\n",
        "assert $one == $two",
    ),
    Bug(
        "two regions see each other's rows",
        "两个区域会看到对方的数据",
        "the cache key leaves out `$text`",
        "缓存键里漏了 `$text`",
        '''\
    def «local|regional|own»_«$ent|${ent}_of_$text|${state}_$ent»(self, ${ent}_id: str, $text: str) -> $Ent:
        """«Return|Find» the $ent_word as seen from one $text, loading it once.$tail"""
''',
        '        $a = f"$ent/{${ent}_id}"\n',
        '        $a = f"$ent/{$text}/{${ent}_id}"\n',
        """\
        if $a not in self._$attr:
            self._$attr[$a] = self._load(${ent}_id, $text=$text)
        return self._$attr[$a]
""",
        "    $a = make_$role()\n    $a.$method('$sample', 'north')\n",
        "    assert $a.$method('$sample', 'south').$text == 'south'\n",
        "AssertionError: assert 'north' == 'south'",
    ),
    Bug(
        "calls to the peer hang for minutes",
        "调用对端会卡住好几分钟",
        "milliseconds are passed where seconds are expected",
        "把毫秒当成秒传了进去",
        '''\
    def «ask|query|request»_«$ent|peer|${ent}_state|$other»(self, ${ent}_id: str) -> Mapping[str, object]:
        """«Ask|Query» the peer about one $ent_word; the limit is in milliseconds.$tail"""
        $a = self._session.prepare("$ent", ${ent}_id)
''',
        "        $b = self._session.send($a, timeout=$BACKOFF_MS)\n",
        "        $b = self._session.send($a, timeout=$BACKOFF_MS / 1000)\n",
        """\
        if $b.status >= 400:
            raise $Err(f"$ent {${ent}_id}: {$b.status} from {self._name}")
        return $b.json()
""",
        "    $a = FakeSession()\n    make_$role(session=$a).$method('$sample')\n",
        "    assert $a.timeouts == [$BACKOFF_MS / 1000]\n",
        "assert [$one] == [$one / 1000]",
    ),
    Bug(
        "the sweep stops in the middle on busy days",
        "数据多的日子清理会半途停掉",
        "rows are deleted from the dictionary that the loop walks over",
        "循环遍历字典的同时又在删除它的元素",
        '''\
    def «purge|clear|discard»_«$ents|by_state|small_$ents»(self, state: str = "$state") -> int:
        """«Remove|Delete» small ${ent_word}s in that state; returns how many.$tail"""
        $a = len(self._$attr)
''',
        "        for $b in self._$attr:\n",
        "        for $b in list(self._$attr):\n",
        """\
            if self._$attr[$b].state == state and self._$attr[$b].$num < $QUEUE_DEPTH:
                del self._$attr[$b]
        return $a - len(self._$attr)
""",
        "    $a = make_$role($attr={f'$ent-{at}': make_$ent($num=at) for at in range($three)})\n",
        "    assert $a.$method() == $two\n",
        "RuntimeError: dictionary changed size during iteration",
    ),
    Bug(
        "customers are shown the oldest entry, not the newest",
        "页面上显示的是最旧的一条，而不是最新的",
        "the list is sorted the wrong way round",
        "排序方向反了",
        '''\
    def «latest|newest|last»_«$ent|by_$text|${ent}_of_$text»(self, $text: str) -> $Ent | None:
        """«The newest|Find the newest» $ent_word of one $text, if any.$tail"""
        $a = [$ent for $ent in self._$attr.values() if $ent.$text == $text]
''',
        "        $a.sort(key=lambda $ent: $ent.updated_at)\n",
        "        $a.sort(key=lambda $ent: $ent.updated_at, reverse=True)\n",
        """\
        self._metrics.gauge("$event.candidates", len($a), limit=$QUEUE_DEPTH)
        return $a[0] if $a else None
""",
        "    $a = make_$role($attr=aged_${ents}('$sample', count=$three))\n",
        "    assert $a.$method('$sample').id == '$ent-$two'\n",
        "AssertionError: assert '$ent-0' == '$ent-$two'",
    ),
    Bug(
        "rows without `$num` take the whole batch down",
        "只要有一行没有 `$num`，整批都会失败",
        "`$num` may be `None` on imported rows and nobody checks",
        "导入的数据里 `$num` 可能是 `None`，没有人检查",
        '''\
    def «accrue|tally|add_up»_«$ents|$num|${num}_of_$ents»(self, $a: Iterable[$Ent]) -> int:
        """«Count|Add up» whole batches of $num, writing each step down.$tail"""
        $b = 0
        for $ent in $a:
''',
        "            $b += $ent.$num // $BATCH_SIZE\n",
        "            $b += ($ent.$num or 0) // $BATCH_SIZE\n",
        """\
            self._journal.append(("$verb", $ent.id, $b, self._clock.now()))
        return $b
""",
        "    $a = [make_$ent($num=None), make_$ent($num=$BATCH_SIZE * $two)]\n",
        "    assert make_$role().$method($a) == $two\n",
        "TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'",
    ),
    Bug(
        "a refused $ent_word still counts as done",
        "被拒绝的$ent_zh仍然算作完成",
        "the `except` swallows the error and returns the old row",
        "`except` 把异常吞掉了，返回的是旧数据",
        '''\
    def «forward|hand_over|pass_on»_«$ent|to_peer|${ent}_to_$other»(self, $a: $Ent) -> $Ent:
        """«Pass|Hand» one $ent_word on to the peer and return its answer.$tail"""
        try:
            return self._remote.$verb($a.id, timeout=$TIMEOUT_S)
        except ConnectionError as error:
''',
        '            self._log.warning("$event: %s", error)\n            return $a\n',
        '            raise $Err(f"$ent {$a.id} was refused: {error}") from error\n',
        "",
        "    $a = make_$role(remote=Refusing())\n",
        "    with pytest.raises($Err):\n        $a.$method(make_$ent($num=$two))\n",
        "Failed: DID NOT RAISE <class '$package.$area.$name.$Err'>",
    ),
)
