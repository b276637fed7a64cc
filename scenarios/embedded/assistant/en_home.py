"""English, part five: moving house, presents, guests, training, things to buy."""

HOME = """
@flat.label
- the flat at {address}
@flat.event
- Keys and handover
@flat.query
- removal quotes
@flat.found
- We have it: the flat at {address}! The rent is {rent} a month, and we get the keys on {day}. What do I have
  to think of?
- Big news. We are moving to {address}. {rent} a month, keys on {day}. Please put it in and make me a list.
@flat.note
- New flat: {address}, {rent} a month, keys on {day}.
@flat.plan
- Congratulations! I have put the keys into the calendar for {day}. For {address} I would start with
  this:¶¶{advice}¶¶The rest can wait until the contract is signed by both sides. I will remind you of the deposit
  {n4_9} days before.
- How good. The handover at {address} is entered for {day}. A first list:¶¶{advice}¶¶I would ask {partner} to
  take half of it; it looks long, but most of these are one phone call.
@flat.advice
- Give notice on the old flat by {d3_12}, in writing; count {n3_9} days for the post.
- Measure the {n2_4} doors and the stairs; a sofa of {n190_240} cm does not turn on a landing of {n90_130}.
- Order {n40_90} boxes, a third of them small, for books; {m1_4} each, used ones for less.
- Read the meters together with the landlord and photograph all {n3_6} of them.
- Ask {n2_3} neighbours when the street is free; the parking ban costs {m40_120} and takes {n9_15} days.
- Redirect the post for {n6_12} months, {m30_70}, and begin {n5_10} days before.
- Tell the school, the bank, the doctor and the {n3_7} insurers; I have a letter ready.
- Book the line for the internet {n4_7} weeks ahead, or you sit there with {n2_9} GB on the phone.
- Keep {n2_4} days of overlap between the flats; painting an empty room takes {n5_9} hours.
- Pack one crate with kettle, {n4_6} cups, screwdriver, tape and the good lamp.
@flat.quotes
- The removal firms have answered. Can you compare their quotes for {address}?
- There should be {n3_3} quotes for the move to {address} in the mail. Which one is the best?
@flat.quote
- Thank you for your enquiry. {firm} would take you to {address} for {price}, with {n2_4} people and a van of
  {n18_40} cubic metres. Included are {n20_60} boxes and {n2_5} hours for furniture; each further hour costs
  {m45_90}.
@flat.compare
- {firm}: {price}, [all in|stairs extra|with packing], free on {n2_4} days that suit us.
@flat.compared
- The quotes side by side:¶¶{list}¶¶They differ most in what is left out. I would ask all of them about the
  stairs and about insurance; below {m2000_9000} of cover I would not sign. On price alone the difference is less
  than {n2_5} hours of work.
@flat.mover
- We take {firm} for the move, at {price}.
- {firm} for {price} sounds right. Please tell them yes, and thank the others.
@flat.hired
- {firm} has the job, {price}, and the others have a polite no. For the weeks until then:¶¶{advice}
- I have accepted the quote of {firm} at {price}. They want to see the stairs first, {n20_40} minutes. Until
  then:¶¶{advice}
@flat.later
- The handover at {address} slips: keys on {new}, not on {old}. The painters are late.
- The landlord rang. We do not get the keys to {address} on {old}; it will be {new}.
@flat.moved
- That is a nuisance, but not a disaster. I have moved the handover to {new} and asked {firm} for a later day.
  What follows from it:¶¶{advice}
- Keys on {new}, then. {firm} can do it, they say, without a surcharge. And now:¶¶{advice}
@gift.label
- {friend}'s birthday
- {friend}'s [graduation|exhibition opening]
- {sibling}'s birthday
- {sibling}'s [house-warming|silver wedding]
- {colleague}'s farewell
- {colleague}'s [jubilee|new baby party]
@gift.query
- presents for somebody who has everything
- small well-made things
@gift.present
- a linen apron
- a hand-bound notebook
- a cast-iron pan
- a day at the pottery studio
- a set of tulip bulbs
- a pocket telescope
- a wooden chess set
- a subscription to the puzzle weekly
- a walnut salad bowl
- a map of the coast, framed
- a pair of garden shears
- a tea tasting for two
@gift.shop
- {firm}, {street}; wrapped within {n5_20} minutes
- {firm}, by post in {n2_6} days
- {surname}'s workshop, open until {t17_19}
@gift.text
- Made by hand in [Devon|Kent|Fife], {n30_400} a year, each with its number.
- Bought again by {n20_60} of {n80_120} customers, mostly for [aunts|teachers|neighbours].
- Takes up {n10_40} cm on a shelf and lasts {n6_30} years if one is kind to it.
- Comes with a card on which {n20_60} words fit.
- May be returned within {n14_60} days, unused, with the receipt.
- One in {n12_50} buyers would have liked another colour.
- Weighs {n200_1900} grams with its box, so the post costs {m3_9}.
@gift.ask
- {label} is on {day}. I would like to give something for up to {limit}. Ideas?
- I need a present for {label}, which is on {day}. At most {limit}. No vouchers, please.
@gift.idea
- {present}, {price}. {about}
- {present} for {price}. {about}
@gift.advice
- Add a card with more than {n2_4} sentences; that is what people keep.
- If several of you chip in, {n3_6} people make it {m40_120} without anyone feeling it.
- Order by {d4_12}; after that the post takes {n4_8} days.
- Keep the receipt until {d40_70}, just in case.
@gift.offer
- For {label} I would think of these:¶¶{list}¶¶And in general:¶¶{more}
- Two ideas that fit the limit:¶¶{list}¶¶Some thoughts besides:¶¶{more}
@gift.choose
- For {label} I take {present}. Note it, so that I do not give it twice.
- For {label}, {present} is perfect. Put it on the list.
@gift.note
- {label}: {present}.
@gift.chosen
- On the list: {present} for {label}. I will check the delivery {n5_9} days before and tell you when to wrap it.
- {present} it is. I have noted it with {label}, and I can order it as soon as you say so.
@gift.wrong
- I gave you a wrong date: {label} is not on {old}, it is on {new}.
- Correction, I have just asked {partner}: {label} is on {new}. {old} was wrong.
@gift.corrected
- Corrected: {label} is on {new}. I had {old} in the calendar; that entry is gone.
- Thank you, {label} now stands on {new} instead of {old}. There is still enough time for the post.
@dish.starter
- roast squash with thyme
- chickpea and lemon soup
- beetroot with orange and dill
- grilled courgettes with mint
@dish.main
- lentil stew with sweet potatoes
- stuffed peppers with saffron rice
- polenta with mushrooms and sage
- white beans with tomatoes and rosemary
@dish.dessert
- poached pears with star anise
- plum compote with cinnamon
- orange salad with cardamom
- baked apples with raisins
@dinner.label
- the dinner for {friend} and {friend}
- the dinner with the {colleague} team
- the lunch for the neighbours at number {n2_90}
- the supper after {child}'s concert no {n2_9}
- the farewell dinner for {friend} before {city}
@dinner.allergen
- peanuts = peanut
- celery = celery
- mustard = mustard
- shellfish = shellfish
- kiwi = kiwi
- sesame = sesame
- soya = soya = soy
@dinner.where
- at home, long table
- at home, garden if dry
@dinner.ask
- We are giving {label} on {day}; {count} people will come. {guest} cannot have {allergen}. Can you suggest a menu?
- Help me with {label}, please: {day}, {count} of us. Careful, {guest} is allergic to {allergen}. What could we
  cook?
@dinner.menu
- For {label} I suggest:¶¶1. {starter}¶2. {main}¶3. {dessert}¶¶None of it contains {allergen}, so {guest} is
  safe as long as the stock cube and the bread are checked as well. On the diet I went by this: {diet}. A few
  hints:¶¶{advice}
- A menu without {allergen}; as to diet, I had this in mind: {diet}.¶¶1. {starter}¶2. {main}¶3. {dessert}¶¶I
  would tell {guest} beforehand what there is; people with an allergy relax when they know. What helps on the
  day:¶¶{advice}
@dinner.advice
- The main dish can stand for {n20_60} minutes at {n70_90} degrees and gets better.
- Cook the dessert the day before, {n30_50} minutes, and keep it cool.
- Lay the table at {t15_17}; at {t18_19} you will not have a hand free.
- {n2_3} bottles of something without alcohol for every {n4_6} people.
- Count {n250_380} grams of vegetables a head, and {n60_90} of rice or polenta.
- Leave {n10_25} minutes between the courses; nobody is in a hurry.
@dinner.shop
- Now the shopping list for {label}, for {count} people.
- Please turn that into a shopping list for {count}. {label} should not cost more than {m60_180}.
@dinner.item
- {n2_9} kg of squash or sweet potatoes, {m3_12}
- {n3_12} lemons and {n2_9} oranges
- {n400_900} g of lentils or white beans, {m2_6}
- {n2_5} bunches of herbs, the flat ones, {m2_8}
- {n6_14} pears or apples, firm
- {n2_3} litres of good stock without additives
- {n300_900} g of rice, {m2_7}
- {n2_6} tins of tomatoes, {m1_6}
- olive oil, {n500_750} ml, {m6_16}
- {n2_4} loaves from the bakery, ask what is in them
- sparkling water, {n4_12} bottles
- coffee, {n250_500} g, ground on the day
@dinner.list
- For {starter}, {main} and {dessert}:¶¶{list}¶¶I would have it brought, the slot for that being {groceries}.
  Check every packet for {allergen}; on this list, stock and bread are the likely places.
@dinner.move
- {label} moves from {old} to {new}. {reason}
- We have to shift {label}: {new} instead of {old}. {reason} The guests know.
@dinner.moved
- Moved to {new}. The menu stays, {main} and all; I have shifted the delivery with it. {guest} has not answered
  yet, I will ask again in {n2_4} days.
- {label} is now on {new}. I changed the calendar and told the {n2_3} guests who had asked. The perishable half
  of the shopping should wait until {n2_3} days before.
@race.label
- the {city} half marathon
- the {street} ten-miler
- the {firm} trail run
@race.time
- {h}:{m} hours = {h}:{m} = {h}h{m}
@race.tell
- I have signed up for {label} on {day}. My target is {target}. Make me a plan for eight weeks.
- It is decided: {label}, {day}. I want to finish in {target}. What should training look like?
@race.week
- {n2_4} easy runs of {n25_45} minutes, one long one of {n8_17} km.
- {n3_8} times {n400_1200} metres fast, {n2_3} minutes rest, otherwise easy.
- Hills: {n5_10} times {n40_90} seconds up; on Sunday {n10_18} km slowly.
- Less: {n2_3} runs of {n20_35} minutes, and sleep {n8_9} hours.
- Race pace for {n15_40} minutes in the middle of {n9_14} km.
@race.plan
- For {label} I would go about it like this, one line per week:¶¶{list}¶¶Put the sessions {exercise}. {advice}
- A plan for {label}:¶¶{list}¶¶By your rule, training happens {exercise}, so I have entered it there. {advice}
@race.advice
- Increase the distance by no more than {n6_12} per cent a week.
- New shoes need {n40_80} km before the day; buy them by {d10_30}.
- Drink {n150_300} ml every {n4_6} km, and try it out beforehand.
- A pulse above {n168_184} on an easy day means: walk for {n3_6} minutes.
- Write down how you slept; {n2_3} bad nights in a row cost more than a missed run.
- After a cold, wait {n4_9} days, then start with {n20_30} minutes.
- Strength for the hips, {n2_3} times a week, {n10_20} minutes, is worth more than another run.
@race.log
- Training for {label}: {n6_19} km today, and my left calf pulls from kilometre {n3_9} on. Carry on or rest?
- A report on {label}: this week {n2_4} runs, {n14_38} km in all, the last {n2_4} of them in the rain. I am
  tired. What should I change?
@race.answer
- Thank you for the report. That is within what one expects {n4_9} weeks into a plan. I would do
  this:¶¶{advice}¶¶If it still hurts after {n3_6} days, see somebody before you run on.
- Being tired at this point is the plan working, as long as it goes away within {n36_60} hours. For {label} I
  suggest:¶¶{advice}
@race.note
- {label}: the target is {new}.
@race.change
- I have to be honest about {label}. {old} is not the right target. Let us say {new}.
- New target for {label}: {new}, not {old}. Please adjust the plan.
@race.changed
- The target for {label} is now {new}. The plan changes less than you would think:¶¶{advice}
- Noted, {new}. For {label} that means another pace on the fast days, and otherwise:¶¶{advice}
@buy.item
- washing machine
- cargo bike
- sofa bed
- dishwasher
- standing desk
- family tent
- espresso machine
- record player
- sewing machine
- bookcase
- dehumidifier
- digital piano
@buy.label
- the {item}
@buy.where
- at home, ring twice
- at home, ground floor
@buy.ask
- We need a new {item}. Up to {limit}. Please see what is worth having, I have no time for {n20_60} tabs.
- The old {item} has given up. What can one get for {limit} at most that lasts longer than {n3_6} years?
@buy.option
- **{name}**, {price}: {detail}. {about}
@buy.offer
- I read the tests and the complaints. For the {item} these are left:¶¶{list}¶¶{advice}
- Four candidates:¶¶{list}¶¶{advice} Tell me which {item} you like, and I order it.
@buy.advice
- I would pay more attention to spare parts than to the {n2_9} programmes nobody uses.
- The dearest is not the best here; between {m200_300} and {m310_600} the tests see hardly any difference.
- Delivery to the door costs {m15_45}, to the room {m20_60}, and taking the old one away {m10_30}.
- Until {d14_40} one may send it back, opened or not.
- Keep the box for {n14_30} days.
@buy.choose
- The {name} then, for {price}. They can bring the {item} on {day}; please put that in.
- I have ordered the {name} at {price}. Delivery of the {item} is on {day}, so block that morning.
@buy.noted
- Noted: the {name} comes on {day}. {advice}
- The delivery of the {item} is in the calendar for {day}, the {name} with it. {advice}
@buy.move
- The {item} is late. Delivery is not on {old}, it is on {new} now.
- The shop wrote: the {item} comes on {new} instead of {old}. Grr.
@buy.moved
- Moved to {new}. Somebody has to be there for {n2_4} hours; {partner} could, going by the calendar.
- The entry for the {item} is on {new} now. If they move it once more, you may cancel without giving a reason.
"""
