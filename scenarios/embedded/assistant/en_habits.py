"""English, part four: what is said about likes, bills, the month's spending, notes and answers."""

HABITS = """
@taste.topics
- seat
- room
- diet
- meetings
- reminder
- signoff
- coffee
- groceries
- exercise
- transport
@taste.seat.name
- flights
@taste.seat.open
- whatever seat is free
@taste.seat.value
- a window seat = window seat = window
- an aisle seat = aisle seat = aisle
- a seat in the first five rows = first five rows = front five rows
- a seat by the emergency exit = emergency exit = exit row
@taste.seat.why
- My knees [have opinions about this|have been complaining for {n2_6} months].
- On the last flight I sat [wrong|badly] for {n2_4} hours.
@taste.room.name
- hotel rooms
@taste.room.open
- a quiet room
@taste.room.value
- a room facing the courtyard = facing the courtyard = courtyard
- a room on a high floor = high floor
- a room with a kitchenette = kitchenette
- a room near the stairs = near the stairs = stairs
@taste.room.why
- In the last hotel I lay awake until {t1_4}.
- After {n3_9} nights in the wrong kind of room one becomes particular.
@taste.diet.name
- meals
@taste.diet.open
- food that everybody can eat
@taste.diet.value
- vegetarian food = vegetarian
- vegan food = vegan
- food without dairy = without dairy = dairy-free = no dairy
- fish but no meat = pescatarian
@taste.diet.why
- The doctor looked at my {n2_4} blood tests and made a face.
- I have tried it for {n3_9} weeks and feel better.
@taste.meetings.name
- work meetings
@taste.meetings.open
- the usual office hours
@taste.meetings.value
- mornings only = in the mornings = morning
- between 10:00 and 15:00 = 10:00 to 15:00 = 10 to 15
- afternoons only = in the afternoons = afternoon
- Tuesday to Thursday only = from Tuesday to Thursday = Tuesday to Thursday
@taste.meetings.why
- I need {n2_4} hours in one piece to get anything done.
- {child}'s new timetable leaves me no choice until {d60_90}.
@taste.reminder.name
- calendar reminders
@taste.reminder.open
- the standard reminder
@taste.reminder.value
- 30 minutes ahead = 30 minutes = half an hour
- two hours ahead = two hours = 2 hours
- the evening before = evening before
- a full day ahead = a day ahead = one day = 24 hours
@taste.reminder.why
- I missed {n2_3} things last month because of it.
- My phone shows {n20_60} messages a day, so timing is everything.
@taste.signoff.name
- closing my mails
@taste.signoff.open
- Regards
@taste.signoff.value
- Best wishes
- Kind regards
- All the best
- Many thanks
@taste.signoff.why
- {colleague} said the old one sounds [stiff|cold], and I agree.
- I read {n20_60} of my own mails in a row, and it grated.
@taste.coffee.name
- my order at the café
@taste.coffee.open
- a coffee
@taste.coffee.value
- an oat-milk flat white = flat white
- a black filter coffee = black filter = filter coffee
- a decaf cappuccino = decaf
- a double espresso = double espresso
@taste.coffee.why
- I sleep better if I stick to it.
- {friend} talked me into it, after {n3_9} years of the same cup.
@taste.groceries.name
- the grocery delivery
@taste.groceries.open
- the usual delivery
@taste.groceries.value
- Tuesday evening = on Tuesday evening = Tuesday
- Saturday morning = on Saturday morning = Saturday
- Thursday after six = on Thursday after six = Thursday
- Friday at noon = on Friday at noon = Friday
@taste.groceries.why
- Otherwise the {n2_4} crates stand in front of the door until {t19_21}.
- Then {partner} is at home to take it in.
@taste.exercise.name
- training
@taste.exercise.open
- whenever it fits
@taste.exercise.value
- before breakfast = before breakfast
- in the lunch break = lunch break = lunch
- after eight in the evening = after eight = evening
- at weekends only = weekends only = weekends
@taste.exercise.why
- Everything else fell through {n2_5} weeks in a row.
- My pulse is {n4_12} beats lower that way, says the watch.
@taste.transport.name
- journeys within the country
@taste.transport.open
- whatever is quickest
@taste.transport.value
- the train = train = by train
- the coach = coach = by coach
- a hire car = hire car
- the night train = night train
@taste.transport.why
- I want those {n2_6} hours for reading.
- The last journey took {n6_11} hours, and I swore an oath.
@taste.first
- Something to remember for {topic}: {value}, please. {reason}
- One thing for the notes. When it comes to {topic}, what I want is this: {value}. {reason}
- As a standing rule for {topic}: {value}. {reason} You need not ask each time.
@taste.change
- I have changed my mind about {topic}. From now on: {value}, no longer {old}. {reason}
- Please update the rule for {topic}. It used to be {old}; make it {value} from today. {reason}
- For {topic}, forget {old}. I now want {value}. {reason}
@taste.note
- Rule for {topic}: {value}.
@taste.noted
- Saved: for {topic}, {value}. I will go by it without asking, and mention it where it costs something extra,
  say more than {m5_30}.
- I will keep to that: {value} for {topic}. It is in the notes with today's date, so that a later change is
  easy to tell from this one.
@taste.changed
- Changed. For {topic} the rule is now {value}; the old one, {old}, is struck out with today's date. What is
  already booked stays as it is unless you tell me to touch it.
- Understood, {value} from now on for {topic}, and not {old}. I looked for open requests that still follow the
  old rule and found {n2_3}; I will change them where that is free.
@taste.slip
- Please prepare next week for me. For {topic}: {value}, as always.
- When you do the {n2_5} bookings on my list, remember for {topic}: {value}.
@taste.doubt
- Before I do that, I have to ask. For {topic} the notes say "{value}", and that is newer than "{old}". Now you name
  the older one again. Which of the two holds?
- One moment: for {topic} you told me to drop "{old}" and to go by "{value}" instead. Has that changed, or was it a
  slip? I will wait with the requests until I know.
@taste.settle
- Good that you ask. For {topic} let it be this: {value}. Leave {other} aside.
- My mistake for not being clear. What counts for {topic}: {value}, not {other}.
@taste.settled
- Clear. For {topic} it is "{value}". I have written "confirmed" next to it, with the date, and removed the other line.
- Then "{value}" is what holds. The notes on {topic} now have a single line, which should spare us this question in
  future.
@bill.label
- the gym membership at {firm}
- the music lessons at {firm}
- the broadband from {firm}
- the electricity from {firm}
- the storage unit at {firm}
- the home insurance with {firm}
- the veg box from {firm}
- the after-school club at {firm}
@bill.tell
- For the household list: {label} costs {price} a month. What does the contract say about getting out of it?
- Please note {label}, {price} a month, and dig out the letter with the terms.
- We have signed up for {label}, at {price} a month. Can you find the confirmation and tell me the notice period?
@bill.notice
- ten weeks = 10 weeks
- six weeks to the end of a quarter = six weeks = 6 weeks
- one month to the end of a month = one month = 1 month
- three months to the end of the year = three months = 3 months
- two weeks at any time = two weeks = 2 weeks
@bill.letter
- Welcome. Your customer number for {label} is {number}; please quote it whenever you write. The contract runs
  for {n6_24} months first. Notice period: {notice}. The price holds for {n6_18} months; after that we tell you
  {n4_8} weeks ahead of any change. Questions are answered from {t8_9} to {t16_19}.
@bill.noted
- {label} is on the list with {price} a month, {year} a year. By the letter you can leave with a notice of
  {notice}. The customer number is in the same letter; I have copied it to the notes.
- I found the letter. The notice period for {label} is {notice}. At {price} a month it comes to {year} a year,
  which puts it in place {n2_6} of your fixed costs.
@bill.change
- The price of {label} changes: it was {old}, now it is {new} a month.
- A letter has come. {label} costs {new} a month from now on, not {old}.
- Update the list, please: {label} no longer costs {old} but {new} a month.
@bill.note
- {label}: {new} a month from today.
@bill.changed
- Noted, {new} a month for {label}. Over a year that makes a difference of {gap}, {year} in total. A change of
  price usually gives you the right to leave within {n2_6} weeks; I have put the last day for that on the list.
- {label} now stands at {new} a month, {year} a year, so {gap} apart from before. I would not change provider
  for that, but I can ask {n2_3} others for an offer if you like.
@month.ask
- Where did our money go in {month}?
- Please sum up {month} for us, by category, and tell me what stands out.
- {partner} wants to know what {month} cost. Can you add it up from the account?
@month.label
- {category} in {month}
@month.sum
- In {month} the account shows, by category:¶¶{list}¶¶That makes {total} altogether. {remark}
- {month} in figures:¶¶{list}¶¶In total {total}. {remark}
@month.remark
- Without the {n2_3} largest payments it would have been a quiet month.
- {n3_9} payments were under {m5_9}; together they do not matter.
- The standing orders went out between the {n4_6}th and the {n7_12}th, as they should.
- Eating out happened {n2_5} times on a weekday, which is where I would look first.
- One payment looks like a duplicate, a difference of {n2_3} days; I would ask before I dispute it.
@note.ask
- What did I write down under "{title}"? I cannot remember.
- Please look in the notes for "{title}".
- I need the note on "{title}", and whatever else comes up with it.
@note.found
- Under "{title}" you noted: {value}. In the same place there are a few more lines:¶¶{others}
- Found it. "{title}" says {value}. Close by:¶¶{others}
@howto.answer
- This is what I found, from sources that do not copy from each other:¶¶{list}¶¶{close}
- The short version first: less is needed than most pages claim. In detail:¶¶{list}¶¶{close}
- I read {n4_9} pages on it and left out what contradicted itself. What remains:¶¶{list}¶¶{close}
@howto.close
- If you like, I put the first step into the calendar for {d2_9}.
- I would begin with the cheapest of these and see after {n2_4} weeks.
- Where the sources disagree, I took the more careful one; the gap was at most {n10_30} per cent.
- The {n2_3} links I trust most are in the notes.
"""
