"""English, part three: what is said about trips, appointments, the week, work and tastes."""

TALK = """
@system
- You are the personal assistant of {me}, who lives in {home} with {partner} and their child {child} and works
  as {job} at {company}. You read and change the calendar, search mail, web and notes, book travel and send
  mail.¶¶How to work:¶- Look things up before you answer. Never invent a booking, a price or an appointment.¶-
  What {me} says later replaces what was said before; if two statements clash and it is not clear which one
  holds, ask.¶- Keep what {me} likes and dislikes in the notes, with the date.¶- Ask before you spend more than
  {m200_400} at once.¶- Answer in plain sentences; use lists for options and dates.¶¶People: {boss} is the
  manager, {sibling} is family. Friends who come up often: {friend}, {friend} and {friend}. Colleagues:
  {colleague}, {colleague} and {colleague}.
@aside
- Morning.
- [Quick one before the {t8_9} call|Me again, from the tram].
- Back from {n2_5} hours of meetings.
- {child} is asleep, so now I have time for this.
- Sorry for the silence, it was a full week.
- {partner} just reminded me of something.
- I am on the train with bad reception, so keep it simple if you can.
- Before I forget:
- Another thing, while I wait for {colleague}.
@lookup
- Let me check [the records|what is there] first.
- One moment, I am looking that up.
- I will see what I can find.
- Looking into it now.
@move.why
- {child} has a [school play|match|recital] at exactly that time.
- {boss} has put a board meeting on top of it.
- {partner} cannot get away before {t14_18} that day.
- The other side asked for it, they are [short of people|closed] that day.
- I had not seen that {sibling} is in town for {n2_4} days.
- There is a rail strike announced from {t4_9} on.
@companion
- {partner}
- {sibling}
- {friend}
- {colleague}
@trip.purpose
- for {friend}'s wedding
- for the partner days of {company}
- for the spring fair of {firm}
- for a long weekend off
- for the kick-off with {firm}
- for {sibling}'s fortieth
- for the conference on open maps
- for a visit to the {firm} works
@trip.label
- the trip to {city} {purpose}
@trip.query
- flights {home} to {city}
@trip.ask
- I have to plan the trip to {city} {purpose}. [I would leave|We leave] on {out} and be back on {back};
  {companion} is coming along. Could you see whether the calendar allows it and what flights there are?
- Please look into {city} {purpose}: out on {out}, back on {back}. I am travelling with {companion}. What does
  it cost to fly, and does anything in the calendar get in the way?
- It is settled, I am going to {city} {purpose}, together with {companion}. Departure {out}, return {back}.
  Find me a few sensible flights [that do not start in the middle of the night|and tell me which one you would
  take].
@trip.option
- **{name}** with {about}: {detail}, {price}. [Calm at the airport at that hour|Good connection into town|The
  lowest change fee of the lot, {m12_40}].
- **{name}** ({about}), {detail} for {price}. [A good record for being on time|No bus to the plane, as a rule|
  The return leg fits better than with the others].
@trip.offer
- I went through the calendar and the fares for {city} {purpose}. Nothing in those days is impossible to move;
  the entries that touch the trip are ordinary meetings. These are the flights I would look at:¶¶{list}¶¶My pick
  is {best}: the times are humane, and if plans shift, changing it does not cost a fortune. For {companion} I
  would book on the same ticket. As to the seat, I would ask for {seat}. Shall I book {best}, or would you rather
  wait a few days? In my experience fares on this route rise by about {n5_20} per cent in the last {n3_5} weeks.
- Here is what I found for {city}.¶¶{list}¶¶All of them leave you [time to get to the airport without a taxi|an
  evening in town on the first day]. I lean towards {best}. It is not the cheapest by {m8_40}, but it has the
  better record for being on time, and with {companion} along that matters more. The seat request would be
  {seat}. If you agree I book it and put the trip into the calendar; the meetings of that week I would decline
  with a short note.
@trip.book
- [Good|Fine], take {flight} with {carrier}, for both of us.
- {flight} it is. Please book it and put it into the calendar for {city}.
- Book {flight}, then. {companion} is fine with the times too.
@trip.booked
- Done. {flight} to {city} on {out} is booked for you and {companion}, reference {ref}, {fare} in all. I asked
  for {seat}. The trip {purpose} is in the calendar with a reminder, and the fare rules are in the confirmation,
  should anything change. I would check in the evening before; I can remind you at {t18_21}.
- Booked: {flight}, {out}, {fare} in all, under the reference {ref}, with {seat} as the seat request.
  {companion} is on the same booking. Two things remain for {city}: a place to sleep, and somebody for {n2_5}
  small things at home while you are away. Tell me when you want to look at rooms.
@trip.move
- About {label}: it has to move. Not {old} any more, we leave on {new} instead. {reason} {companion} knows already.
- Change of plan for {label}: please rebook the departure from {old} to {new}. {reason}
- I am sorry, {label} again. {old} does not work, {new} does. {reason} Can you sort out the ticket?
@trip.moved
- The departure is now on {new}. The airline took {fee} for the change, and I moved the calendar entry along
  with the reminder. {companion} gets a short mail from me with the new times. If you already have plans for the
  evening of arrival in {city}, tell me and I shift those too.
- Rebooked to {new}, for a fee of {fee}. The calendar is up to date. I also looked for knock-on effects: the
  return is unchanged, so the stay in {city} gets a different length accordingly. Do you want me to change the
  return as well? The rules allow it until {n2_6} days before.
@room.ask
- Now a place to sleep in {city}. Not more than {limit} a night, please, and within reach of the centre.
- What about a hotel in {city}? I would spend up to {limit} a night if it is quiet.
- Could you find {n3_5} hotels in {city} to choose from? My limit is {limit} a night, breakfast does not matter.
@room.query
- hotels in {city} near the centre
@room.option
- **{name}**, {price} a night, {detail}. {about}
@room.offer
- I compared what is free in {city} on those nights:¶¶{list}¶¶I would rule out whatever has trouble with noise
  in the reviews. For the room itself I would ask for {room}. All of these can be cancelled, the strictest of
  them up to {n5_10} days before, so there is no harm in booking now and thinking later.
- These are the ones I would consider in {city}:¶¶{list}¶¶My order would go by the walk in the evening rather
  than by price, since the difference is at most {m20_90} a night. I would add a request for {room}. Which one
  should it be?
@room.book
- Let us take {hotel} for {rate} a night.
- {hotel}, please. {rate} a night is all right.
- I like the sound of {hotel} in {city}; {rate} a night is what I had in mind. Book it.
@room.booked
- {hotel} is booked, confirmation {number}. I asked for {room}; they note it but promise nothing. The address
  and the rules are attached to the trip in the calendar.
- Confirmed under {number}: {hotel} in {city}, with the wish for {room}. You pay on arrival, and the last day
  to cancel without cost is in the calendar as well.
@visit.label
- the dentist appointment with Dr {surname}
- the eye test at {firm} Opticians
- the physiotherapy session with {surname}
- the parents' talk with {child}'s teacher {surname}
- the meeting with the tax adviser {surname}
- the car inspection at {firm} Motors
- the vet appointment with Dr {surname}
- the mortgage talk with {surname} at the bank
- the vaccination at Dr {surname}'s practice
@visit.ask
- Please note {label}: {day} at {time}, {place}. Does it collide with anything?
- I have just been given a slot for {label}. It is on {day}, {time}, at {place}. Put it in and tell me what is
  around it.
- New entry: {label}, {day}, {time}, {place}. Move whatever is soft.
@visit.noted
- {label} is in the calendar for {day} at {time}, {place}. Around it you have:¶{near}¶That leaves enough room
  on both sides. I would set off {n20_50} minutes before; parking is [poor|scarce] in that part of town.
- Noted: {label}, {day}, {time}, {place}. Close to it are¶{near}¶Nothing of this is fixed to the minute. If it
  runs over, the only thing at risk is what comes directly after, and I can move that with one mail.
@visit.bring
- the referral letter
- the blue insurance folder
- the last {n2_4} statements
- the old glasses
- the signed consent form
- the service booklet
- last year's assessment
- the x-ray from the spring
@visit.prepare
- What do I have to bring to {label}? They wrote something, I am sure.
- Is there anything to prepare for {label}? Look through the mails, please.
@visit.letter
- Thank you for choosing us. So that all goes smoothly with {label}, please bring {item} and come {n5_20}
  minutes early. If you cannot come, ring us {n24_48} hours before on extension {n100_990}; after that we charge
  {m15_60}.
@visit.ready
- They ask you to bring {item} and to come a little early. I have added both to the entry. If {item} is not at
  hand, tell me today and I will ask whether a copy is enough.
- The mail about {label} is clear: bring {item}. Cancelling is free up to {n2_3} days before. I would put it by
  the door the evening before, since the morning that day starts at {t6_8}.
@visit.move
- {label} has been moved: not {old} but {new}, at {time}. {reason}
- Please change {label} from {old} to {new}, {time}. {reason}
- They rang about {label}. The new date is {new} at {time} instead of {old}.
@visit.moved
- Changed: {label} is now on {new} at {time}, still at {place}. The old slot is free again, and I have kept it
  clear for [an hour of quiet work|the things that slid last week].
- {label} now stands on {new}, {time}, {place}. There was one soft entry in the way, which I pushed back by
  {n30_90} minutes. Nobody else has to be told.
@week.ask
- What does my calendar look like from {first} to {last}?
- Give me an overview of {first} to {last}, please, with whatever looks too tight.
- Run me through the days from {first} until {last}. I want to know where I can fit in {n2_4} hours of reading.
@week.sum
- From {first} to {last} you have:¶¶{list}¶¶{remark}
- This is the picture for {first} to {last}.¶¶{list}¶¶{remark}
@week.remark
- The tightest spot is around {t11_13}, with {n5_15} minutes between two ends of town.
- I would keep {t14_16} on one of the days free for the post that has piled up.
- {n2_4} of the entries have no agenda; I can ask for one, or you decline.
- {partner} has the evening shift {n2_3} times that week, so pick-up falls to you.
- If something has to give, let it be the one with {n2_9} tentative answers.
- The longest free stretch is {n90_190} minutes, early in the week.
@project.label
- the {firm} [relaunch|handbook|migration]
- the {firm} [survey|pilot|audit]
- the {city} [office|depot|showroom] project
@project.tell
- Work: I have been given {label}. {lead} leads it, and we may spend {budget}. Keep that somewhere and tell me
  how you would set it up.
- For your notes: {label} starts now. The lead is {lead}, the budget is {budget}. What should I settle in the
  first week?
- {boss} has signed off {label} with a budget of {budget}; {lead} is in the lead. I need a plan that survives
  the first month.
@project.note
- {label}: lead {lead}, budget {budget}.
@project.note.later
- {label}: the deadline is now {new}.
@project.note.handed
- {label}: {new} leads now.
@project.plan
- I have noted the lead and the budget for {label}. This is how I would begin:¶¶{advice}¶¶With {lead} I would
  agree on one page that says what is not part of it. That page saves more money than any tool.
- Saved. For the first weeks of {label} I suggest:¶¶{advice}¶¶Before anything else, ask {lead} what they would
  drop first if the money ran out. The answer tells you what the work is really about.
@project.advice
- A meeting of {n20_40} minutes every {n4_9} days, standing, with no more than {n4_8} people.
- One list of risks, at most {n5_12} lines, each with a name and a day next to it.
- Hold back {n8_20} per cent of the money until the first {n2_4} results are on the table.
- Ask {colleague} for the figures of the last round; they were off by {n10_40} per cent, and one should know why.
- Write down by {d4_20} what counts as finished, in {n3_7} sentences that {boss} would sign.
- Book the {n2_3} people from the other floor now; by {d20_40} they will be full.
- Try the riskiest step first, with {n10_60} records rather than all {n3000_90000}.
- Keep a diary of decisions: {n2_3} lines each, numbered, open to everyone.
- Plan {n2_6} days for cleaning up at the end, and defend them.
@project.mail
- Draft a mail to {lead}: {label} has to be finished by {day}. Have a look at the thread first, so that it fits.
- {label} must be done by {day}. Please read what they have been writing and draft a mail to {lead} that says
  so without sounding like a threat.
@project.body
- I have read the thread, and of the {n4_12} open points I think {n2_3} can be closed today.
- The figure of {m800_9000} that is going round is too high; we checked and get {m300_790}.
- Could you send me the list of the {n12_90} places that are still missing, in the order in which you would do them?
- I suggest a short call at {t9_16} on {d2_9}, {n15_30} minutes, only about what blocks us.
- If {colleague} cannot be freed for {n2_5} days, tell me by {d3_10} and I will talk to {boss}.
- From my side, {n2_4} things are late, and I will have them with you in {n2_6} days.
- Please leave out part {n3_7} for now; we can add it once the first {n20_80} users have seen the rest.
@project.draft
- Here is a draft:¶¶> Dear {first},¶>¶> a word on {label}: we have to be finished by {day}. {body}¶>¶>
  {signoff}¶> {me}¶¶I left out the quarrel about the {n2_6} invoices in the thread; that is better said than
  written. Shall I send it as it stands?
- From the thread I gather that they know it will be tight. So:¶¶> Hello {first},¶>¶> {label} is due on {day},
  and I would like us to get there without late nights. {body}¶>¶> {signoff},¶> {me}¶¶It is {n90_160} words long.
  If you want it shorter, the second sentence can go.
@project.tweak
- Good, but make the beginning friendlier, then send it to {lead}.
- Drop the sentence about the figures, otherwise fine. Send it.
- Fine. Add that I am at my desk until {t16_18} every day this week, and send it.
@project.final
- Dear {first}, thank you for all the work so far. {label} is due on {day}. I am happy to talk it through at
  any time.
@project.sent
- Sent to {lead}, with your change. I will look for an answer in {n2_4} days and tell you if there is none.
- The mail about {label} is on its way to {lead}. I kept a copy with the notes on the project.
@project.why
- {boss} wants it to fit in with the half-year figures.
- The supplier needs {n2_5} more weeks for the parts.
- The only person who knows the export is off sick for {n2_6} weeks.
- The auditors come {n6_12} days later than they had said.
@project.later
- News on {label}: the deadline is no longer {old}, it is {new} now. {reason}
- {reason} So {label} is due on {new} rather than {old}. What does that change?
@project.moved
- Noted, {label} is now due on {new}. What I would do with it:¶¶{advice}¶¶The mail from last time still names
  the old date, so I suggest a line to everyone who was in copy.
- The deadline of {label} now reads {new} in the notes. Three consequences:¶¶{advice}¶¶I would tell the team
  why, not only when; otherwise the next date is taken less seriously.
@project.handed
- {label} changes hands: {new} takes over from {old}. {reason}
- Please note that {new} is in charge of {label} now, not {old} any more. {reason}
@project.over
- Noted: {new} leads {label}. For the handover from {old} I would suggest:¶¶{advice}¶¶I can set up the first
  talk between the two and sit the {n2_5} regular meetings over to the new name.
- {new} is down as the lead of {label}. So that nothing gets lost on the way from {old}:¶¶{advice}¶¶The access
  rights are the usual trap: somebody has to ask for them, and it takes {n2_6} days.
"""
