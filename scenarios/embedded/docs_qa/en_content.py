"""Chapters of the invented documentation in English, about content and people; `chapters` reads the form."""

CHAPTERS = r"""
## access | Roles and permissions
record: role assignment, permission set
job: access review, group import
file: access report
? give a contractor read access to a single folder
? delegate user administration to a branch office
? find out why someone can still see a closed project
? run a quarterly access review
? take away a role from everybody in a group at once
1 Select the group or person under **Principals**; nested groups are expanded up to {few} levels.
1 Choose a permission set, not single permissions, so that {a_role} can review the grant later.
1 Set **Valid until**; without a date the grant ends after {days} days.
1 Enter the ticket number in **Reason**. Texts under {n} characters are refused.
1 Press **Preview effect** and check the list of objects that become visible, at most {hundreds} of them.
1 Send the grant to {a_role} for confirmation; it stays pending for up to {hours} hours.
1 Ask the person to sign in again, because open sessions keep their old rights for {minutes} minutes.
! A user has the role but the menu entry is missing | the role is granted on a folder while the menu needs it on the
  workspace | grant `viewer` on the workspace as well and reload after {minutes} minutes
! The access review stops at {percent} percent | a reviewer has left the company and has no deputy | name {a_role}
  as deputy under **Reviews › Substitutes** and resume
! Group members appear twice in the preview | the directory delivers the group under an old and a new distinguished
  name | delete the stale mapping and run the group import once with `--full`
. Denials always win over grants, whichever of the two was made first.
. A permission set may hold up to {hundreds} permissions and can be shared between {n} workspaces.
. Rights are evaluated from the folder upwards, and the search ends at the first explicit denial.
. Changes to a permission set reach running sessions within {seconds} seconds.
. The built-in role `owner` cannot be deleted, but it can be emptied by {a_role}.

## audit | Audit log
record: audit event, event stream
job: integrity check, log transfer
file: evidence bundle
? hand over the audit trail of one user to an external auditor
? stream audit events to a SIEM
? prove that nobody changed the log last year
? see who opened a confidential record
? move old audit events to cold storage
1 Choose the event stream; streams marked with a lock need the consent of {a_role}.
1 Limit the period. More than {days} days at once are processed overnight.
1 Tick **Include reads** if views count as well; this makes the result roughly {few} times larger.
1 Pick the signature key and note its fingerprint in the hand-over form.
1 Start the transfer; the first {hundreds} events arrive as a sample for approval.
1 Compare the closing hash with the one printed on page {n} of the protocol.
1 Let {a_role} countersign the bundle before it leaves the house.
! Gaps in the sequence numbers of a stream | a node was down and its buffer of {hundreds} events overflowed | replay
  the buffer with `--from-spool`; the gap closes after the next integrity check
! The SIEM receives every event twice | both halves of the cluster forward because the leader lock expired after
  {seconds} seconds | raise the lease time and restart the forwarder on the passive node
! Integrity check reports `CHAIN_BROKEN` | events were restored from a backup that is older than the last checkpoint
  | seal the restored range by hand and have {a_role} record the reason
. Audit events are written before the action itself, so a failed action leaves an event with `outcome=denied`.
. Every {hundreds} events a checkpoint hash is stored outside the database.
. Personal data in events is masked after {days} days unless a legal hold is set.
. Reading the log is itself an audited action.
. Time stamps are in UTC; the offset of the client is kept in `client_tz`.

## retention | Retention and legal hold
record: retention rule, legal hold
job: disposal run, expiry scan
file: disposal certificate
? keep personnel files for longer than the default
? freeze all records of a lawsuit
? delete records for good after their period has ended
? get back a record that a disposal run removed
? test a retention rule before it goes live
1 Create the rule as a draft; drafts are evaluated but delete nothing.
1 Define the trigger: creation, closing, or a date field such as `contract_end`.
1 Enter the period and an extra safety margin of {days} days.
1 Assign the rule to classes; a class with over {hundreds} records asks for a second confirmation.
1 Run the simulation and read the column **Would be removed**.
1 Have {a_role} sign off the list within {days} days, otherwise the run is cancelled.
1 Activate the rule; the first disposal run starts {hours} hours later.
! Records with an ended period are still there | a legal hold that was never lifted covers their class | list the
  holds with `--covering` and ask {a_role} to lift those of closed cases
! A disposal run ends with the state `partial` | {percent} percent of the files were open in another session |
  repeat the run outside office hours with a pause of {minutes} minutes between batches
! The certificate lists fewer files than the simulation | duplicates were merged between the two runs | print the
  certificate with `--expand-duplicates`
. Where two rules meet, the longer period wins and the shorter one is shown in grey.
. A legal hold stops disposal at once, even in the middle of a batch of {n} records.
. Disposal certificates are themselves records with a period of {n} years.
. Removed records leave a stub with class, date and rule, but without content.
. Nobody can shorten a rule by more than {percent} percent in one step.

## sso | Single sign-on
record: identity provider, claim mapping, sign-in session
job: directory sync
file: metadata file
? connect a second identity provider
? replace the signing certificate without locking anybody out
? let external partners sign in with their own accounts
? map a claim to a department
? force a new sign-in after a role change
1 Upload the metadata file or give its address; it is fetched again every {hours} hours.
1 Copy the reply address exactly as shown, with the slash at the end.
1 Map the claim `employee_id` first, because accounts are matched by it.
1 Switch on **Test mode** for {a_role} only and sign in from a private window.
1 Watch the sign-in protocol; a clock difference above {seconds} seconds is refused.
1 Enable the provider for {n} people, then for everybody.
1 Leave the local emergency account in place and store its password with {a_role}.
! Users end in a loop between sign-in page and portal | the cookie domain does not match the reply address | set
  `cookie_domain` to the parent domain and clear sessions older than {minutes} minutes
! `AudienceRestriction` failed | the entity id was changed when the host was renamed | register the new entity id at
  the provider and keep the old one for {days} days
! The directory sync deactivates valid accounts | the search base was narrowed and misses {percent} percent of the
  units | widen the base and run one sync with `--no-deactivate`
. Accounts are matched by `employee_id`, never by mail address.
. During a certificate change both keys are accepted for {days} days.
. A provider that fails {few} times in a row is taken out of the chooser for {minutes} minutes.
. Group claims with more than {hundreds} values must be fetched through the directory sync.
. Signing out here ends the session at the provider only if it supports back-channel logout.

## webhooks | Webhooks
record: webhook endpoint, payload template, dead letter
job: delivery attempt, replay batch/replay batches
? send a message to a chat when an invoice is approved
? verify that a webhook really comes from the product
? deliver the events that were lost during an outage
? move an endpoint to another host without losing events
? stop a flood of deliveries
1 Enter the address; only port 443 and certificates valid for {days} more days are accepted.
1 Choose the event types. Wildcards count as {n} types towards the quota.
1 Copy the secret now, as it is shown only once.
1 Answer the challenge within {seconds} seconds by returning its value in the body.
1 Send a test event and compare the header `X-Signature-256` with your own computation.
1 Set the back-off to *exponential* and the ceiling to {minutes} minutes.
1 Name {a_role} as contact for dead letters.
! Deliveries fail with status 401 after a while | the secret was rotated and the receiver knows only the old one |
  accept both signatures for {hours} hours, then drop the old one
! Events arrive in the wrong order | parallel delivery is on and the receiver ignores `sequence` | set one lane per
  endpoint or sort by `sequence` on arrival
! The endpoint was paused by itself | {percent} percent of the last {hundreds} deliveries failed | mend the
  receiver, press **Resume**, and replay the dead letters
. A delivery counts as done when the receiver answers with any 2xx status.
. Bodies above {n} kilobytes are replaced by a link that is valid for {hours} hours.
. The order of events is kept within one record, not between records.
. Receivers should store `delivery_id` and ignore repeats for {days} days.
. Private addresses are refused unless {a_role} lists them explicitly.

## tokens | API tokens and quotas
record: access token, service account, quota plan
job: token rotation
file: usage report
? create a token for a nightly script
? raise the request quota for a migration weekend
? rotate all tokens of a team
? find the token that causes the load
? limit a token to one workspace
1 Create a service account first; tokens of people end when the person leaves.
1 Tick the scopes one by one. More than {n} scopes need the approval of {a_role}.
1 Restrict the source addresses to at most {n2} ranges.
1 Choose the end date; {days} days is the longest period without an exception.
1 Store the token in the vault under the path that the dialog proposes.
1 Call `/v2/whoami` once: it must answer in under {seconds} seconds and show the right workspace.
1 Revoke the old token after {hours} hours without traffic.
! Requests are answered with 429 although the quota is not used up | the burst limit of {hundreds} requests a minute
  was hit, not the daily quota | spread the calls or ask {a_role} for a plan with a larger burst
! A fresh token is refused | the replica has not seen it yet; this takes up to {seconds} seconds | wait and repeat,
  or send the first call to the primary
! The usage report shows calls from an unknown address | a proxy in between hides the real source | trust the proxy
  under **Network › Forwarded headers** and reload the report
. Tokens are stored as hashes; nobody, not even {a_role}, can show one again.
. Quota is counted per service account over a sliding window of {minutes} minutes.
. A token that was not used for {days} days is put to sleep and can be woken by its owner.
. Scopes ending in `.write` never include the matching `.read`.
. The header `X-Quota-Left` tells what is left of the present window.

## indexing | Search index
record: index shard, ranking profile
job: rebuild job, text extraction
file: synonym list
? rebuild the index without taking search offline
? make part numbers with hyphens searchable
? rank recent records higher
? exclude a folder from search
? find out why a document does not turn up
1 Check the free space: a rebuild needs {few} times the size of the present index.
1 Create a second index with the suffix `-next`; it takes no queries yet.
1 Start the rebuild with {n2} workers and watch the queue.
1 Load the synonym list, at most {hundreds} lines, before the first query.
1 Compare the hit counts of the {n} sample queries in the check list.
1 Switch the alias; searches that are running finish on the old index.
1 Delete the old index after {days} days, when {a_role} agrees.
! New records are found only after an hour | the refresh was stretched during the migration and never set back |
  restore the refresh interval and flush the queue once
! Text extraction hangs at a scanned drawing | pages above {hundreds} megapixels are cut into tiles one after the
  other | exclude the class from recognition or raise the time limit to {minutes} minutes
! Umlauts and accents are not matched | the index was made with the profile `ascii` | rebuild with the profile
  `folding`; the profile of an existing index cannot change
. Rights are applied when the query runs, so a change of rights needs no rebuild.
. A shard should hold no more than {n} million entries.
. Synonyms work in both directions unless the line contains an arrow.
. Search terms shorter than {n} characters match whole words only.
. The score of a record halves every {days} days under the profile `recent`.

## imports | Bulk import
record: staging row
job: import batch/import batches, duplicate check
file: mapping file, rejection list
? import suppliers from an old system
? repeat an import without creating duplicates
? undo an import that went wrong
? import attachments together with their records
? see which rows were rejected and why
1 Save the table as UTF-8 with one header line; columns beyond {hundreds} are ignored.
1 Load the mapping file and correct every line that is shown in orange.
1 Choose the key columns, at most {few} of them.
1 Run the duplicate check and decide between *skip*, *merge* and *replace*.
1 Import the first {hundreds} rows as a rehearsal into the staging area.
1 Let {a_role} look at the rejection list; over {percent} percent rejected rows stop the batch.
1 Release the batch. Within {hours} hours it can be undone as a whole.
! Dates are off by one day | the file carries midnight in local time and is read as UTC | declare the zone in the
  mapping file and import the staging rows again
! A batch remains in the state `waiting` | another batch of the same class holds the lock for up to {minutes}
  minutes | wait, or ask {a_role} to cancel the older one
! Attachments are missing although the records are there | the archive contains paths with backslashes | pack the
  archive again or set `path_style=windows`
. An import never fires webhooks unless the batch asks for it.
. Rejected rows keep their line number, so the file can be mended in place.
. Undo removes what a batch created and restores up to {hundreds} changed records.
. Numbers with a comma are read according to the locale in the mapping file.
. Batches above {n} gigabytes must be copied to the drop folder by {a_role}.
"""
