"""Who writes the papers of the research scenario, and where they appear. All names are invented."""

from __future__ import annotations

from .words import Pair

_SURNAMES = (
    "Abelard Ashgrove Balquist Brandvik Calloran Castellow Dahlgren Dunmore Eastlake Elverson Farrand Fenwright "
    "Galbray Gessner Hallorin Harkavy Ilverton Ingleby Jarnefelt Jessamy Kaldor Kestrane Lindqvold Lorrimer Maddern "
    "Marchetto Nakasone Norrby Oakhurst Ostrander Pellerin Prewett Quennell Quintrell Rademaker Rostova Sandoval "
    "Sethna Tarkanen Thornbury Ulvestad Umber Valcourt Vennard Wexley Wolfram Yarrow Ysolde Zanetti Zielke Amankwah "
    "Birungi Chaturani Demirkan Eguchi Fonoti Guerreira Hossaini Imanova Jovellar Kiplagat Lacsamana Mwangola "
    "Nguyenne Okonjola Paszek"
)
_GIVEN_ZH = "书衡 明溪 若谷 以宁 承安 思远 静之 云舟 知白 清嘉 怀瑜 致远 木青 若水 子衿 望舒 修远 秉文 景行 闻道"
SURNAMES = tuple(_SURNAMES.split())
NAMES_ZH = tuple(
    family + given
    for family in "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦许何吕施张孔曹严华金魏陶"
    for given in _GIVEN_ZH.split()
)
JOURNALS: tuple[Pair, ...] = (
    ("Annals of Field Trials", "《田野试验年刊》"),
    ("Review of Applied Evidence", "《应用证据评论》"),
    ("Journal of Slow Measurements", "《长期观测学报》"),
    ("Proceedings of the Varnholt Society", "《文澜学会会刊》"),
    ("Letters on Practice and Proof", "《实践与验证通讯》"),
    ("Open Notebook of Interventions", "《干预研究开放笔记》"),
    ("Quarterly of Replication", "《重复研究季刊》"),
    ("Archive of Small Effects", "《微小效应文集》"),
)
