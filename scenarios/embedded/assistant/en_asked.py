"""English, part six: questions on the wider world, and the probes."""

READING = """
@howto.topics
- jetlag
- compost
- damp
- chess
- guitar
- passport
- sleep
- bike
@howto.jetlag.query
- avoid jet lag short trips
@howto.jetlag.ask
- [How do I|What can one do to] get over jet lag when I only stay for {n3_5} days?
- I fly across {n4_8} time zones soon. Is there anything that really helps with jet lag?
@howto.jetlag.fact
- Shift bed-time by {n20_45} minutes a day, starting {n3_5} days before; more than that nobody keeps up.
- Light counts most: {n20_60} minutes outdoors before {t9_10} after a flight to the east.
- On stays under {n2_3} days it can be better to stay on home time altogether.
- Coffee after {t13_14} local time undoes more than it mends, by {n30_70} minutes of sleep in one study.
- A nap of {n15_30} minutes helps; one of {n70_110} makes the night worse.
- Eat at local times from the first day, and keep the meal after {t19_20} small.
- Expect about {n2_3} days per {n2_3} zones; complaints beyond day {n7_9} have another cause.
@howto.compost.query
- compost small garden smell
@howto.compost.ask
- Our compost smells. What are we doing wrong?
- How does one start a compost on {n3_9} square metres without annoying the neighbours?
@howto.compost.fact
- Mix {n2_3} parts of dry brown stuff with one part of green; a bad smell means too much green.
- Turn the heap every {n10_20} days; the core should reach {n50_65} degrees.
- Pieces of more than {n4_8} cm take {n3_6} months longer.
- Cooked food draws rats within {n2_9} nights; leave it out.
- The heap should feel like a wrung sponge; in a dry summer it needs {n5_10} litres a week.
- Half a square metre is too little to get warm; {n70_100} cm each way is the least.
- Finished compost is ready after {n7_14} months and smells of woods.
@howto.damp.query
- damp walls winter humidity
@howto.damp.ask
- There are dark spots in the corner of {child}'s room. Is that damp, and what do we do?
- The windows run with water at {t6_8}. How damp is too damp?
@howto.damp.fact
- Keep the air between {n40_45} and {n55_60} per cent; a meter costs {m8_20}.
- Open the windows wide for {n5_10} minutes, {n3_4} times a day; a gap all day only cools the wall.
- Furniture should stand {n5_10} cm away from an outside wall.
- A wall below {n11_13} degrees gathers water at normal room air.
- Wipe off spots of less than {n20_50} cm with alcohol of {n70_80} per cent, and wear gloves.
- Washing for {n3_4} people puts {n6_10} litres of water a week into the air.
- If it comes back within {n4_8} weeks, the cause is in the wall: ask the landlord in writing.
@howto.chess.query
- teach chess to children
@howto.chess.ask
- {child} wants to learn chess. How do I begin without spoiling it?
- What is a good way to teach a child chess in {n10_20} minutes a day?
@howto.chess.fact
- Start with pawns only; {n5_8} games of that teach more than all rules at once.
- Let the child take back {n2_4} moves a game, and say aloud why.
- Puzzles of {n2_3} moves, {n4_8} a day, beat any book on openings.
- Lose on purpose at most {n2_3} times in {n8_10}; children notice.
- Clubs take beginners from the age of {n6_7}; the first {n2_4} evenings are free nearly everywhere.
- A clock is fun, with {n10_15} minutes each, but only after {n2_4} months.
- Stop while it is still fun, after {n20_30} minutes.
@howto.guitar.query
- guitar beginner adult practice
@howto.guitar.ask
- Is it too late to learn the guitar with {n12_20} minutes a day?
- I bought a guitar for {m80_200}. How do I practise so that I do not give up after {n3_6} weeks?
@howto.guitar.fact
- {n10_15} minutes a day beat {n80_120} on Sunday, by a wide margin.
- Change between {n2_3} chords, {n40_60} times a minute, before you learn a fourth.
- New strings every {n3_4} months, {m8_16}; old ones sound dull and hurt.
- The fingertips hurt for {n2_3} weeks; that passes.
- Play with a beat of {n60_70} first, and add {n3_5} a week.
- A teacher for {n4_6} lessons at the start saves {n5_9} months of bad habits.
- Record yourself once a week for {n60_90} seconds; it is the only honest mirror.
@howto.passport.query
- passport renewal child processing time
@howto.passport.ask
- How long does a child's passport take at the moment, and what goes wrong most often?
- What do I need to renew a passport without going there {n2_3} times?
@howto.passport.fact
- At present {n3_7} weeks; the express way takes {n6_9} days and costs {m60_140} more.
- The photo must not be older than {n2_6} months; {n12_18} in a hundred are turned down.
- Some countries want {n3_6} months left on it at the day of entry.
- For a child both parents sign; a missing signature costs {n8_14} days.
- Appointments are released at {t6_8} on weekdays, and gone within {n10_30} minutes.
- Keep copies of {n2_3} pages apart from the passport itself.
- The old one is handed in or cut; ask for it back if it has visas worth {n2_4} years.
@howto.sleep.query
- sleep better evening routine
@howto.sleep.ask
- I wake up at {t3_4} every night. What can I change before I see a doctor?
- What do the better studies say about falling asleep faster?
@howto.sleep.fact
- The room at {n16_18} degrees, dark enough that one does not see one's hand at {n40_60} cm.
- Get up at the same time within {n20_30} minutes, on Sundays too.
- After {n20_25} minutes awake, get up and read something dull in poor light.
- Alcohol shortens the way to sleep by {n8_12} minutes and breaks the second half of the night.
- Screens matter less than what is on them; stop work {n60_90} minutes before.
- A warm bath {n80_100} minutes earlier, {n10_15} minutes long, has good evidence.
- If it goes on for more than {n3_4} weeks, {n3_4} nights a week, see somebody.
@howto.bike.query
- bicycle maintenance at home
@howto.bike.ask
- The bike squeaks. What can I do myself before I pay {m60_120} at the shop?
- What belongs in a small workshop for {n3_4} bicycles, for at most {m60_140}?
@howto.bike.fact
- Clean and oil the chain every {n200_350} km; wipe off what you see after {n5_10} minutes.
- A chain gauge costs {m5_12} and saves a cassette for {m25_60}.
- Pump up to the number on the side, {n3_6} bar for town tyres, every {n2_3} weeks.
- Brake pads under {n1_2} mm are done; new ones take {n15_25} minutes the first time.
- Squeaking in rhythm with the pedals: the seat post in {n3_5} of {n8_10} cases.
- A torque wrench up to {n14_24} Nm is worth it for anything made of carbon.
- Have the wheels trued every {n2_3} years, {m15_30} each.
"""

ASKED = """
@ask.trip.out
- On what date do I leave on {it}, as things stand now?
@ask.trip.companion
- Who is coming with me on {it}?
@ask.trip.ref
- What is the booking reference of the flight for {it}?
@ask.trip.flight
- Which flight number is booked for {it}?
@ask.trip.fare
- How much did the flight for {it} cost when it was booked?
@ask.trip.hotel
- Which hotel did I choose for {it}?
@ask.trip.rate
- What does the hotel for {it} cost per night?
@ask.trip.number
- What is the confirmation number of the hotel for {it}?
@was.trip.out
- On what date was {it} to start originally, before any change?
@by.trip.ref
- the trip whose flight has the reference {v}
@by.trip.hotel
- the trip with the stay at {v}
@by.trip.number
- the trip whose hotel confirmation is {v}
@by.trip.companion
- the trip with {v}
@event.trip.out
- my departure on {it}
@ask.visit.day
- On what date is {it} now?
@ask.visit.place
- At which address is {it}?
@ask.visit.bring
- What am I to bring to {it}?
@was.visit.day
- For what date was {it} first arranged?
@by.visit.place
- the appointment at {v}
@by.visit.bring
- the appointment to which I have to bring {v}
@event.visit.day
- {it}
@ask.project.lead
- Who leads {it} now?
@ask.project.budget
- What is the budget of {it}?
@ask.project.deadline
- By what date does {it} have to be finished, by the latest word?
@was.project.deadline
- What was the first deadline of {it}, before it was put off?
@was.project.lead
- Who led {it} at the beginning?
@by.project.lead
- the project that {v} leads
@by.project.budget
- the project with a budget of {v}
@event.project.deadline
- the deadline of {it}
@ask.bill.price
- How much does {it} cost per month now?
@ask.bill.number
- What is our customer number for {it}?
@ask.bill.notice
- What is the notice period for {it}?
@was.bill.price
- What did {it} cost per month at first?
@by.bill.number
- the contract with the customer number {v}
@sum.bill
- How much do {a} and {b} cost per month together at present?
@ask.month.total
- How much did we spend on {it}, by the household account?
@ask.flat.rent
- What is the monthly rent of {it}?
@ask.flat.keys
- On what date do we get the keys to {it}, by the latest word?
@ask.flat.mover
- Which firm did we hire for the move to {it}?
@was.flat.keys
- On what date were we first to get the keys to {it}?
@by.flat.mover
- the flat to which {v} moves us
@event.flat.keys
- the handover of {it}
@ask.gift.day
- On what date is {it}, by the latest word?
@ask.gift.limit
- What is the most I wanted to spend on a present for {it}?
@ask.gift.present
- What did I decide to give for {it}?
@was.gift.day
- Which date did I give for {it} at first?
@by.gift.present
- the occasion for which I chose {v}
@event.gift.day
- {it}
@ask.dinner.day
- On what date is {it} now?
@ask.dinner.allergen
- What must not be in the food at {it} because of an allergy?
@was.dinner.day
- On what date was {it} to be at first?
@event.dinner.day
- {it}
@ask.race.day
- On what date is {it}?
@ask.race.target
- What finishing time am I aiming for in {it} now?
@was.race.target
- What was my first target for {it}?
@event.race.day
- {it}
@ask.buy.model
- Which model of {it} did I choose?
@ask.buy.price
- What does {it} that I chose cost?
@ask.buy.day
- On what date is the delivery of {it} due now?
@was.buy.day
- For what date was the delivery of {it} announced at first?
@event.buy.day
- the delivery of {it}
@ask.note.value
- {it}
@ask.taste.seat
- Which seat do I want on flights these days?
@ask.taste.room
- What kind of hotel room should you ask for?
@ask.taste.diet
- What is my rule for meals at present?
@ask.taste.meetings
- When do I want my work meetings to be?
@ask.taste.reminder
- How far ahead should calendar reminders come?
@ask.taste.signoff
- With which words should my mails close?
@ask.taste.coffee
- What should you order for me at the café?
@ask.taste.groceries
- When should the grocery delivery come?
@ask.taste.exercise
- When do I want to train?
@ask.taste.transport
- How do I want to travel within the country?
@was.taste.seat
- Which seat on flights did I ask for when I first told you?
@was.taste.diet
- What was the very first rule that I gave you for meals?
@was.taste.room
- What kind of hotel room did I ask for when I first told you?
@gap
- How many days lie between {a} and {b}, by the latest dates?
@never
- What is the registration number of {boss}'s car?
- Which blood group does {partner} have?
- What is the name of {friend}'s dog?
- Which size of ski boots does {child} take?
- What is the combination of the lock on {sibling}'s bicycle?
- In which year did {partner} leave school?
- What is the name of the bank clerk who opened {child}'s savings account?
- Which streaming service does {friend} share with us?
- What is {colleague}'s parking space?
- What does {sibling} pay for the cleaner?
- Which middle name stands in {child}'s birth certificate?
- What is the maiden name of {boss}'s mother?
@never.trip
- From which gate does the flight for {it} leave?
- Which travel insurance did I take out for {it}?
@never.visit
- What is the name of the receptionist for {it}?
@never.project
- Who made the logo for {it}?
@never.flat
- What is the name of the previous tenant of {it}?
@never.dinner
- Which wine did {friend} promise to bring to {it}?
@never.race
- What is my start number for {it}?
@never.buy
- What is the serial number of {it}?
"""
