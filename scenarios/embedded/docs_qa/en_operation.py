"""Chapters of the invented documentation in English, about operation; `chapters` reads the form."""

CHAPTERS = r"""
## exports | Export and reporting
record: report layout, report subscription, column set
job: export job
file: export archive
? send a report to the board every Monday
? export a project with its whole history
? leave out personal data in an export
? share a large archive with an outside partner
? build a report over two workspaces
1 Start from the layout that is closest and save it under a new name.
1 Choose the columns; sets with over {n} columns are printed on A3.
1 Add a filter for the period and use *relative* dates.
1 Under **Privacy** choose what {a_role} may see in clear text.
1 Preview the first {hundreds} rows.
1 Set the schedule, keeping {minutes} minutes away from the nightly backup.
1 Add the recipients. Outside addresses get a link that ends after {hours} hours.
! The report is empty on Mondays | the relative period is computed before the weekend import has ended | move the
  report {hours} hours back or make it depend on the import
! The spreadsheet shows scientific notation for order numbers | the column has the type *number* | change the column
  to *text* and create the archive again
! An archive cannot be opened by the partner | it is encrypted with a method that his tool does not know | choose
  the compatible method and tell the password by phone
. An export sees exactly what the person who started it may see.
. Archives over {n} gigabytes are split into numbered volumes.
. Subscriptions of people who left are passed to {a_role}.
. Layouts can be shared, but every copy keeps the name of its author.
. A report that takes longer than {minutes} minutes is moved to the slow lane.

## approvals | Approval workflows
record: approval step, workflow draft, substitution rule
job: escalation run
file: decision protocol
? add a second approver above a certain amount
? name a substitute for the holidays
? escalate approvals that nobody answers
? change a workflow while cases are running
? withdraw an approval that was given by mistake
1 Copy the active workflow to a draft, since the active one is read-only.
1 Drag the new step between two others; at most {n} steps may stand in parallel.
1 Write the condition, for example `amount > {hundreds}`.
1 Assign the step to a role, not to a person, and name {a_role} as substitute.
1 Set the deadline to {hours} hours and choose what happens afterwards.
1 Play the draft with {n2} closed cases and compare the paths.
1 Publish the draft. Running cases stay on the old version until {a_role} moves them.
! A case skips a step | the requester holds the approving role himself and self-approval is off | add a second
  member to the role or route the step to {a_role}
! Reminders are sent twice a day | both the workflow and the substitution rule remind | switch off reminders in the
  rule; it takes effect after {minutes} minutes
! The draft cannot be published | a condition names a field that {percent} percent of the cases do not have | give
  the field a default or use `coalesce`
. Nobody approves his own request, unless the step allows it by name.
. A decision can be withdrawn within {minutes} minutes, as long as the next step is untouched.
. Deadlines run on working days of the calendar of the requester's site.
. Substitutes see the case only during the absence, and their decision carries both names.
. After {few} escalations a case lands with {a_role}.

## backup | Backup and restore
record: restore point, snapshot chain
job: restore drill
file: backup set, replica copy
? restore a single workspace to yesterday evening
? prove that backups can really be restored
? move the backup target to another storage
? back up before an upgrade
? shorten the nightly backup window
1 Put the workspace into read-only mode and tell {a_role}.
1 Choose the restore point by time; points marked with a star were verified.
1 Restore into a shadow workspace, which needs {n} gigabytes of free space.
1 Compare the record counts; a difference of more than {n2} records must be explained.
1 Check {n} files at random with the checksum tool.
1 Swap the shadow and the original within {minutes} minutes.
1 Keep the original for {days} days under the suffix `-before`.
! The nightly backup runs into office hours | the chain has over {n} increments and every night reads all of them |
  start a new full backup on Saturday and lower the chain length
! Restore fails with `KEY_NOT_FOUND` | the key that encrypted the set was retired | import the retired key as
  *decrypt only* with the help of {a_role}
! The replica lags behind by hours | the line is shared with the report server | reserve {percent} percent of the
  bandwidth for the replica between 22:00 and 05:00
. A restore point is called verified only after a drill has read every block of it.
. Increments are merged into the full set after {n} nights.
. Restoring never overwrites; it always makes a copy with a suffix.
. Files in cold storage need up to {hours} hours before they can be read.
. The key for backup sets is not the key of the database.

## encryption | Encryption keys
record: master key, data key
job: key rotation, sealing request
file: key escrow file
? rotate the master key without downtime
? use a key from a hardware module
? make a lost laptop's data unreadable
? hand the escrow file to the board
? find records still encrypted with an old key
1 Bring {few} key custodians together; fewer cannot open the module.
1 Create the new master key in the state *prepared*.
1 Wrap the data keys again. Count on {minutes} minutes for each {hundreds} keys.
1 Watch the list of stragglers until it holds no entry older than {hours} hours.
1 Promote the new key to *active*; the old one becomes *decrypt only*.
1 Write the escrow file to two media and seal them in front of {a_role}.
1 Retire the old key after {days} days without a single use.
! Reading old records has become slow | every read unwraps its data key because the key cache holds only {hundreds}
  entries | enlarge the cache or re-encrypt the class in the background
! The module refuses the connection | its client certificate ended and reminders went to a closed mailbox | renew
  the certificate and name {a_role} as a second recipient
! Rotation stays at {percent} percent | records under legal hold may not be rewritten | let the rotation skip held
  records and repeat it when the hold is lifted
. Rotating the master key rewrites only data keys, never the records themselves.
. A key in the state *decrypt only* can be brought back by {few} custodians together.
. Escrow files open only with {few} of the shares that were handed out.
. Each workspace has its own data keys, so one can be destroyed without the others.
. Key material leaves the module only in wrapped form.

## alerts | Monitoring and alerts
record: alert rule, metric series/metric series, on-call schedule
job: health probe
file: incident digest
? get a call when the queue grows
? silence alerts during a maintenance window
? send metrics to an outside dashboard
? find the cause of a slow morning
? hand over the on-call duty
1 Pick the metric and look at its last {days} days before you choose a threshold.
1 Set the threshold to the value that is passed at most {few} times a month.
1 Add a waiting time of {minutes} minutes, so that a short peak wakes nobody.
1 Choose the schedule; an empty slot falls to {a_role}.
1 Link the runbook, as alerts without one are shown in grey.
1 Fire the rule once with **Test** and confirm it on the phone.
1 Review the rule after {days} days together with {a_role}.
! An alert fires every night at the same time | the health probe runs while the database is being packed | move the
  probe by {minutes} minutes or add a silence for that slot
! The dashboard shows holes | series with over {hundreds} labels are dropped by the collector | leave out the label
  `request_id` and restart the collector
! Nobody was called although the rule fired | the schedule had an end date in the past | extend the schedule and
  switch on the weekly gap check
. A rule that was silenced for over {days} days is reported to {a_role}.
. Metrics are kept in full for {days} days and as hourly means afterwards.
. Two alerts with the same cause are joined to one incident within {minutes} minutes.
. Health probes run from {few} places and a failure counts when two of them agree.
. Digest mails leave out incidents that lasted under {seconds} seconds.

## scheduler | Job scheduler
record: job calendar, worker pool, dependency chain
job: scheduled job
file: run protocol
? run a job on the last working day of the month
? make one job wait for another
? repeat only the failed part of a job
? keep night jobs away from the maintenance window
? give an urgent job its own workers
1 Choose the calendar of the site; holidays are taken from it up to {few} years ahead.
1 Define the start with the form or as an expression of five fields.
1 Add the jobs it depends on; chains longer than {n} links are refused.
1 Set the longest running time to {minutes} minutes and the action *stop and report*.
1 Assign a worker pool and leave {percent} percent of it free.
1 Run the job once by hand as {a_role}.
1 Look at the run protocol and delete the manual run from the statistics.
! A job did not run on the day of the clock change | its start lies in the hour that does not exist | move it by
  {minutes} minutes or set the calendar to UTC
! Jobs pile up on Monday morning | the pool was reduced to {n} workers for the weekend and not restored | set the
  pool size by calendar instead of by hand
! A chain starts although its first job failed | the link has the condition *ended* instead of *succeeded* | correct
  the link and have {a_role} repeat the chain from the second job
. A job never runs twice at a time, unless it is marked as parallel.
. Missed starts are made up for if they are less than {hours} hours old.
. Priorities go from 1 to {n}, and the smaller number runs first.
. A stopped job gets {seconds} seconds to finish its present record.
. Protocols of runs without a message are shortened to one line.

## connectors | Data connectors
record: source connection, sync cursor, field mapping
job: delta load
file: schema dump
? connect the finance database read-only
? load only what changed since last night
? start a connector again from an earlier point
? rename a field without breaking the sync
? see why a delta load takes so long
1 Ask the owner of the source for a read-only account with {n} connections.
1 Store the password in the vault and enter only its path.
1 Press **Inspect**; sources with over {hundreds} tables open a chooser.
1 Map the key field and the field that holds the time of the last change.
1 Load a sample of {hundreds} rows and check the types.
1 Start the first full load in the evening; {a_role} gets a mail at the end.
1 Switch to delta loads with an overlap of {minutes} minutes.
! Deleted rows remain in the product | the source deletes for good and a delta load cannot see it | run a comparison
  load every {days} days
! The cursor jumps back by a day | the source was restored from a backup | set the cursor by hand and let {a_role}
  confirm the gap
! A load ends with `TYPE_MISMATCH` | a column was widened and {percent} percent of the values no longer fit |
  refresh the schema dump and confirm the new type in the mapping
. A connector only reads; writing back needs the separate gateway.
. The overlap of delta loads is {minutes} minutes and duplicates are dropped by key.
. Cursors can be set back up to {days} days.
. New columns in the source are shown but not loaded until {a_role} maps them.
. Connections that rest for {minutes} minutes are closed.

## upgrades | Installation and upgrades
record: upgrade plan
job: preflight check, schema migration
file: hotfix package, rollback image
? upgrade a cluster node by node
? go back to the old version after a failed upgrade
? install a hotfix on a Friday
? estimate how long a schema migration takes
? upgrade an installation without internet access
1 Read the notes of every version in between; jumps over more than {few} versions are refused.
1 Run the preflight check and clear everything marked in red.
1 Make a backup and write its number into the upgrade plan.
1 Drain the first node; open sessions move within {minutes} minutes.
1 Install the package and wait until the node reports *ready* {few} times.
1 Run the schema migration once, from one node, as {a_role}.
1 Repeat for the other nodes and keep the rollback image for {days} days.
! The node does not come up after the upgrade | a plug-in of the old version is still in the folder | move the
  plug-in away and start with `--safe`
! The migration stops at table {n} | a report holds a lock on it for more than {minutes} minutes | stop the report
  server and resume with `--continue`
! Users see the old interface | the proxy keeps static files for {hours} hours | purge the proxy; {a_role} can do so
  under **Network › Cache**
. Nodes of two neighbouring versions may run side by side for {hours} hours.
. A schema migration can be paused, but not undone once it has passed {percent} percent.
. Hotfixes are cumulative: the newest holds all the earlier ones.
. Without internet access the licence is renewed by file every {days} days.
. The preflight check changes nothing and may run during office hours.
"""
