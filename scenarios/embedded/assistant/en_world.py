"""English, part one: who there is, and what the calendar, the mail and the notes hold."""

WORLD = """
@me
- Nora Ashdown
- Daniel Pryce
- Imogen Hale
- Tobias Renshaw
- Priya Raman
- Fergus Calloway
@partner
- Marek
- Elena
- Jonah
- Saskia
- Owen
- Lucia
@child
- Ines
- Theo
- Mabel
- Kit
- Rosa
@sibling
- Harriet
- Callum
- Beatrix
- Joel
@boss
- Helen Vasquez
- Martin Oduya
- Claire Brandt
- Stephen Lowe
@friend
- Gwen
- Ravi
- Tamsin
- Pieter
- Aisha
- Bruno
- Hattie
- Samir
- Lottie
- Declan
@colleague
- Anika Storm
- Bill Teague
- Chidi Eze
- Dora Lindqvist
- Emil Varga
- Farah Aziz
- Gareth Pugh
- Hana Kovac
- Ivo Marsh
- Jun Takeda
@home
- Bristol
- Leeds
- Edinburgh
- Norwich
- Cardiff
@company
- Fennel & Rook
- Larkfield Instruments
- Tidewater Maps
- Copperline Press
@job
- a product planner
- an operations lead
- a research coordinator
- a design manager
@surname
- Okafor
- Whitcombe
- Lindgren
- Petrou
- Achterberg
- Mistry
- Dunne
- Sorensen
- Kaplan
- Ferreira
- Ogilvie
- Banerjee
@street
- Mill Lane
- Quarry Road
- Orchard Street
- Bellfield Avenue
- St Anne's Terrace
- Cooper's Row
- Harbour Walk
- Windmill Hill
- Larch Close
- Canal Street
- Priory Gardens
- Station Parade
@address
- {n2_190} {street}
@firm
- Brightwater
- Oak & Ember
- Halcyon
- Pennine Direct
- Sparrowhawk
- Rowan Brothers
- Northgate
- Blue Anchor
- Fairfield
- Kestrel
- Marlowe's
- Tallow & Co
- Evergreen
- Silverbrook
@city
- Lisbon
- Vienna
- Copenhagen
- Porto
- Ghent
- Turin
- Krakow
- Seville
- Helsinki
- Lyon
- Zagreb
- Bilbao
- Gothenburg
- Basel
- Trieste
- Tallinn
- Valencia
- Leipzig
- Bergen
- Ljubljana
- Utrecht
- Palermo
@airport
- [the main airport|the airport], terminal {n1_2}
- departures hall, {n2_3} hours before take-off
@event
- One-to-one with {colleague} = room {n1_7}.{n10_48}
- Planning round, week {n2_51} = room {n1_7}.{n10_48}
- {child}: swimming, group {n1_6} = leisure centre, entrance {c}
- Call with {surname} & Partners = online
- Coffee with {friend} = café on {street}
- Budget review, part {n2_6} = room {n1_7}.{n10_48}
- {child}: parents' evening, form {n2_7}{c} = school hall
- Choir, voices {n1_4} = {n2_90} {street}
- Recycling out, round {n1_9} = at home
- Bike in for service = {firm}, {street}
- Interview, candidate {n2_9} of {n10_14} = online
- Catch-up with {boss} = canteen, table {n2_30}
- Allotment: water and weed bed {n1_9} = allotments, plot {n12_99}
- Demo of release {n2_9}.{n0_12} = room {n1_7}.{n10_48}
- Rehearsal for {sibling}'s party = {n2_90} {street}
@event.place
- café on {street}
- {n2_90} {street}
@event.line
- - {day}, {time}: {title} ({place})
@event.brief
- {title}; {place}. {remark} {remark}
@remark
- Bring the list from {d2_9}, items {n2_6} to {n7_19}.
- {colleague} joins {n10_25} minutes late.
- Takes {n25_90} minutes as a rule, last time it was {n95_140}.
- Slides {n3_9} to {n10_34} are new since the last time.
- Moved twice already; if it moves again, {partner} has to know by {t9_16}.
- {n2_9} people have accepted, {n2_3} are tentative.
- Door code goes to those who ask at {t8_9}, not before.
- Leave {n12_45} minutes before at the latest, {n46_60} if it rains.
- Agreed to keep it to {n3_5} topics; the rest goes on page {n2_9} of the shared list.
- {firm} pays the coffee this time, we paid {m9_48} in the last round.
@calendar.hint
- {n2_6} other entries that week.
- Travel time of {n8_55} minutes added before and after.
- Last change by {me} at {t7_22}.
- Free slots that day: {t8_10} to {t11_13} and {t14_15} to {t16_19}.
- Shared with {partner}; seen at {t7_21}.
@note.related
- shopping list {n2_40} = ideas for {child}'s room, page {n1_7} = talk with {colleague}, point {n2_9}
- books lent out, line {n3_60} = {friend}'s recipe, version {n2_5}
- questions for {boss}, number {n2_18} = seeds for the allotment, row {n1_9} = gift list {n2_8}
@sender
- {colleague}
- {boss}
- office@{n1_99}.example
- {surname}, {firm}
- service desk {n2_40}
@post.subject
- Your order no {n10000_99999}
- News from {street}, issue {n2_60}
- Reminder: meter reading, round {n2_9}
- Library: {n2_6} items due
- Season ticket {n100_999}
@post.body
- Your parcel of {n2_9} items left the depot at {t5_9} and should arrive within {n2_6} days.
- The library asks for {n2_5} books back by {d3_20}; each day late costs {m1_3}.
- Our shop on {street} opens {n20_60} minutes later during the works, until {d10_60}.
- There are {n2_9} new messages in your account, the oldest from {p3_30}.
- With {n200_900} points you may choose a [mug|bag|towel]; {n30_190} of them lapse on {d20_60}.
- The meter was read at {t8_17}: {n1000_9999} units, {n12_300} more than the year before.
- We have changed page {n2_9} of our terms; the word "usual" now reads "customary" in {n3_8} places.
- Rate us: {n2_5} questions, {n40_120} seconds, and a chance of {m20_90}.
- Street party on {d10_50} from {t14_16}, {n12_40} tables, bring a chair; ask {surname} at number {n2_90}.
- Your subscription goes on by itself for {n6_12} months unless we hear from you in {n10_30} days.
@mail.body
- Following up on point {n2_9} of last week: we got {n9_48} answers, {n2_4} of them useful.
- The supplier in {city} now asks for {m900_9000} and {n2_8} weeks; I said we would think about it until {d3_20}.
- I counted again and get {n12_480} instead of {n490_900}, so either the export or my filter is wrong.
- Could somebody look at rows {n20_90} to {n91_400}, column {c}, before {t9_16} on {d2_12}?
- {colleague} will stand in for me for {n2_9} days; I read mail once a day, at about {t7_20}.
- We have {n2_6} open questions, and number {n1_6} is the one that costs money: roughly {m300_4000} a week.
- The room on floor {n1_8} is too small for {n12_40} people, so I took the one with {n44_90} chairs instead.
- The draft has grown to {n14_60} pages; I would cut chapters {n2_4} and {n5_8} and move table {n2_19} to the end.
- In {n3_9} of {n10_14} test runs it worked; the failures all came after {t20_23}.
- Please do not forward the price list: version {n2_9} still has {n2_14} mistakes in it.
- Thanks for the call at {t9_17}. My notes say {n2_5} decisions and {n2_4} things we only thought were decisions.
- Attached are {n2_7} photos from {street}, the third one shows the crack of {n3_30} centimetres.
@note.page
- Hallway paint = Which shade code do my notes give for the paint in the hallway? = {c}{n100_999}-{n10_99} =
  Matt, from {firm}, {n2_4} tins of {n2_5} litres. The code on the lid is %; {n2_3} tins are left in the cellar.
- Heating = According to my notes, who services the boiler? = {firm} Heating = Filled up to {n12_19} tenths of
  a bar. % services it every {n11_14} months and rings {n2_4} days before.
- Tyres = Which tyre size stands in my notes? = {n175_225}/{n45_65} R{n15_18} = Winter set in rack {n2_60} at
  {firm}. The size is %, bought for {m210_480}.
- Mattress = Which mattress did I note down as the one that we liked? = {brand} {n100_990} = We tried {n4_9} of
  them in {n2_3} shops. The best was the %, firmness {n2_5}, {m400_900}.
- Key holder = Who holds our spare keys, by my notes? = {surname} at number {n2_90} = The spare keys are with
  %, second bell from the top. Best time is after {t17_19}.
- Curtain rail = How long must the curtain rail be, by my notes? = {n140_320} cm = Measured twice with
  {partner}: %, with {n3_7} brackets and {n12_30} rings.
- Piano tuner = What does the piano tuner charge, by my notes? = {m62_140} = Comes in spring, takes {n70_130}
  minutes. Charges %, and {m8_25} more for a string.
- Bread = How much water goes into the sourdough in my notes? = {n310_420} g = Flour {n450_600} g, water %,
  salt {n8_13} g. Rest {n9_16} hours, bake {n38_52} minutes.
- Printer = Which cartridge does the printer in my notes take? = {c}{c}-{n20_990} = Takes %, no other. {n2_3}
  left in drawer {n1_6}; they last about {n180_700} pages.
- Roof box = What load may the roof box carry, by my notes? = {n50_110} kg = Borrowed from {friend}. May carry
  %, no faster than {n90_120} km/h; key {n2_9} of the ring.
- Bookclub = Which book did I note down for the book club? = The {firm} Letters = Next one is %, {n210_640}
  pages; we read up to page {n80_200}, and {friend} brings {n2_4} questions.
- Violin = Which string set do my notes name for {child}'s violin? = {brand} {n10_99}{c} = The teacher says %,
  {m14_60} a set, changed every {n5_10} months.
@note.more
- Added at {t7_22}: check again in {n2_9} months.
- {partner} thinks {n2_6} is enough, I would take {n7_12}.
- See also page {n2_90} of the blue folder.
- Paid {m8_160}, receipt in envelope {n2_30}.
- Told {friend} on {p2_30}, who has had the same trouble {n2_5} times.
- Not urgent: number {n4_40} on the list of things for a wet Sunday.
@payment
- Groceries = Green Basket {n1_9} = 14 = 96
- Groceries = Market stall {c}{n2_30} = 6 = 38
- Groceries = Corner bakery {n1_4} = 4 = 19
- Transport = City Tram {n10_99} = 3 = 24
- Transport = Fuel at {street} = 31 = 78
- Eating out = {firm} Kitchen = 18 = 92
- Eating out = Noodle bar {n2_40} = 11 = 44
- Household = Hardware on {street} = 7 = 130
- Household = {brand} parts = 9 = 64
- Health = Chemist, till {n1_6} = 5 = 41
- Leisure = Cinema, screen {n1_8} = 9 = 36
- Leisure = Bookshop on {street} = 8 = 55
- Clothes = {brand} Outfitters = 19 = 120
- Children = Music school, room {n1_9} = 22 = 80
- Children = Toy library {n2_19} = 4 = 30
@payment.note
- card {n1000_9999} at {t8_20}
- paid by {partner} at {t8_20}
- standing order no {n2_60}
- till {n1_12} receipt {n1000_9999}
- shared with {friend}: half of it comes back
@howto.source
- Handbook, chapter {n2_19}, read {n120_9000} times
- Column by {surname}, {n2_11} years in the trade
- Advice page of {firm}, version {n2_30}
- Forum thread with {n14_240} answers, the best one from {friend}{n10_99}
@howto.filler
- {n12_900} readers found this helpful, {n2_11} did not.
- An earlier version of this page said {n2_9}; that was corrected after {n3_30} letters.
- We asked {n3_9} people who do this for a living and got {n3_9} different answers.
- Prices as of {n2_11} weeks ago; regional differences of up to {n8_30} per cent.
"""
