"""English, part two: what the web offers: flights, hotels, things to buy."""

OFFERS = """
@carrier
- Northlight Air = NL
- Skylark = SK
- Meridian Airways = MD
- Gannet = GN
- Coastline = CT
- Alba Jet = AJ
@flight.remark
- {n5_38} seats left at this fare.
- On time in {n61_96} of 100 departures last season.
- Cabin bag up to {n7_12} kg included; a checked bag of {n18_25} kg costs {m18_60}.
- Seats in front of row {n8_15} have {n2_9} cm more room for the legs.
- [Bus|Tram|Train] from the airport to the centre takes {n14_55} minutes and costs {m3_14}.
- The aircraft is [an older|a newer] type with {n90_210} seats, [no|slow|free] wifi and [a snack|nothing] included.
- Check-in closes {n40_60} minutes before departure; bag drop opens {n2_3} hours before.
- {n2_5} of {n6_9} reviewers this month mention a queue at security of about {n15_50} minutes.
@fare.rule
- A change of date costs {m12_70} up to {n2_72} hours before departure, plus any difference in fare.
- Cancelled within {n12_24} hours of booking, the fare is paid back in full within {n5_14} working days.
- A seat once chosen can be changed free of charge until {n24_48} hours before departure.
- Names can be corrected by up to {n2_4} letters; anything more needs a new ticket and {m20_80}.
- Children under {n2_12} travel at {n60_90} per cent of the fare when booked together with an adult.
- A delay of more than {n2_4} hours entitles to a voucher of {m8_25} and a refund of up to {m60_250}.
- Meals [have to be ordered|can be ordered] {n24_72} hours ahead; the menu has {n2_6} dishes from {m6_12}.
- Sports gear up to {n12_32} kg is carried for {m25_80} each way if announced {n2_7} days ahead.
@hotel
- Hotel {surname}
- The {firm} House
- {street} Lodge
- Casa {surname}
- Pension {surname}
- The {firm} Rooms
@hotel.where
- {n2_25} minutes on foot from the station, floor {n1_6}
- by the river, {n2_9} tram stops from the centre
- old town, {n12_60} rooms, no lift above floor {n2_4}
- next to the market hall, {n9_40} rooms, bicycles for {m6_18} a day
@hotel.text
- Breakfast from {t6_7} to {t9_10}, {m7_19} a head, [eggs to order|mostly bread and fruit|a proper buffet].
- The rooms to the street hear the tram until about {t22_23}; those to the yard do not.
- Built in {n1880_1990}, redone {n2_12} years ago; {n20_70} per cent of the rooms have a bath.
- A desk in every room, {n2_6} sockets, and a connection that guests measure at {n20_180} Mbit/s.
- The bar downstairs closes at {t21_23} and has {n8_40} sorts of [vermouth|tea|local beer].
- Luggage is kept until {t16_20} for {m2_8} a piece; a late check-out costs {m10_45}.
- [Parking|A garage] {n100_900} metres away for {m9_35} a night, height {n180_210} cm.
@reviewer
- [Gillian|Ray|Moira|Ted|Ulrike|Sean], {n2_9} nights in [spring|autumn|winter]
@hotel.review
- We slept [well|badly|like stones] in room {n101_512}, although the heating clicked until {t22_23}.
- The woman at the desk found us a table at {t19_20} when {n3_7} places had turned us away.
- {n2_3} of {n4_6} lamps did not work, and it took {n2_3} calls to get a second pillow.
- For {m70_160} I would come again; for the {m170_240} they ask in high season I would not.
- The shower needs {n2_6} minutes to get warm, then it is excellent.
@room.rule
- Free cancellation until {n2_10} days before arrival; after that {n50_90} per cent of the first night.
- Check-in from {t14_16}, with a key box for arrivals after {t21_23}.
- City tax of {m2_6} a person and night is paid on the spot, in cash or by card.
- A deposit of {m40_150} is blocked on the card and released within {n3_10} days.
- Requests for a certain room are noted but not promised; the house has {n14_80} rooms.
@brand
- Oakline
- Torvald
- Minerva
- Brell
- Haldane
- Sunde
- Quill
- Arbor
- Fonteyn
@product.detail
- {n2_5} years' guarantee, {n3_48} kg, {n21_74} points of 100 for repair
- {n34_70} dB, {n2_5} years' guarantee, spare parts for {n6_12} years
- {n40_190} x {n40_90} cm, tested {n2_14} times, guarantee {n2_5} years
@product.text
- In the test of {n8_30} devices it came {n4_9}th, with full marks for [handling|noise|upkeep].
- Owners report {n2_5} repairs in the first {n24_60} months, mostly [a hinge|a switch|the display].
- It draws {n12_900} watts in use and {n1_4} on standby, about {m4_60} a year at today's price.
- Assembly took our tester {n12_95} minutes and {n2_3} phone calls; the manual has {n6_80} pages.
- A spare [battery|filter|belt|set of feet] costs {m9_85} and arrives within {n2_12} days.
- Colour: [slate|oat|forest green|brick]; the {n2_4} other shades cost {m10_60} more.
- Weak point: the [lid|cable|drawer|strap], which {n3_19} of {n100_240} buyers complain about.
"""
