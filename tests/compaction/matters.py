"""Pairs of statements: of different matters, which both stay, and of one, where the newer wins."""

import re


def _pairs(text: str) -> list[tuple[str, str]]:
    lines = re.sub(r"(?m)^# .*\n|\n (?= )", "", text).strip().splitlines()
    pairs = (line.split(" | ") for line in lines)
    return [(first, second.strip()) for first, second in pairs]


DIFFERENT = _pairs("""
# Files
Keep file_a.py under 100 lines. | Keep file_b.py under 120 lines.
Always keep users.py under 300 lines and never rename it. |
  Always keep orders.py under 500 lines and never rename it.
src/a.ts must use port 3000. | src/b.ts must use port 4000.
Rename a.py and set the timeout to 5 seconds. | Rename b.py and set the timeout to 9 seconds.
Keep Makefile under 100 lines. | Keep Dockerfile under 120 lines.
Keep README below 200 lines from now on. | Keep CHANGELOG below 300 lines from now on.
Lines in *.md have at most 80 characters. | Lines in *.py have at most 100 characters.
# Tables, columns and other named things
Table users has at most 100 columns. | Table orders has at most 20 columns.
Table projects has at most 100 columns. | Table goals has at most 20 columns.
The column name has at most 30 characters. | The column title has at most 60 characters.
The queue mail keeps at most 100 items. | The queue print keeps at most 20 items.
Set the limit of plan A to 5 requests. | Set the limit of plan B to 9 requests.
Now set the limit of plan b to 5 requests. | Now set the limit of plan a to 9 requests.
The flag beta_ui is at 5%. | The flag beta_api is at 50%.
The field `name` has at most 20 characters. | The field `city` has at most 40 characters.
The label "Save" has at most 10 characters. | The label "Send" has at most 12 characters.
# Clients and people
Set the timeout of client A1 to 5 seconds. | Set the timeout of client B2 to 9 seconds.
Acme's budget is $500. | Initech's budget is $900.
The budget of Anna is $500. | The budget of Ben is $900.
Anna's deadline is 2026-12-01. | Ben's deadline is 2026-12-24.
Maria Lopez approves releases. | John Smith approves invoices.
Maria Lopez owns billing. | John Smith owns search.
Answers to Anna should be short. | Answers to Ben should be detailed.
For Anna, the next step is the parser. | For Ben, the next step is the index.
# What something runs or uses
A job with a limit of 5 GB runs on a. | A job with a limit of 9 GB runs on b.
# Ways, of which the way back is another one
From host a to b, the timeout is 5 seconds. | From host b to a, the timeout is 9 seconds.
The timeout from web to db is 5 seconds. | The timeout from db to web is 9 seconds.
Copies from staging to production have a limit of 5 GB. |
  Copies from production to staging have a limit of 9 GB.
# Tasks, tickets, numbers as names
The deadline for task 12 is 2026-12-01. | The deadline for task 13 is 2026-12-24.
The deadline for ABC-1 is now 2026-12-01. | The deadline for ABC-2 is now 2026-12-24.
Phase 1 ends on March 3. | Phase 2 ends on April 4.
Version 1 is due on March 3. | Version 2 is due on April 4.
Ship v2.1 by March 3. | Ship v2.2 by April 4.
The budget for 2026 is $500. | The budget for 2027 is $900.
Line 3 may have 10 words at most. | Line 4 may have 20 words at most.
Sprint 7 is due on 2026-12-01. | Sprint 8 is due on 2026-12-15.
Build 1 uses Python 3.11. | Build 2 uses Python 3.12.
The answer to question 1 is 5. | The answer to question 2 is 7.
# Languages
Use tabs for indentation in Go. | Use spaces for indentation in Python.
Use tabs for indentation in makefiles. | Use two spaces for indentation in scripts.
Write examples for the API in Go. | Write examples for the CLI in Rust.
Lines in Go have at most 120 characters. | Lines in Python have at most 88 characters.
Use Node 18. | Use Python 3.12.
Comments for juniors should be detailed. | Comments for seniors should be terse.
# Weekdays and times
On Mondays the report is due at 9:00. | On Fridays the report is due at 15:00.
On Mondays, deploy the site. | On Fridays, deploy the site.
Send the report every Monday. | Send the report every Friday.
The weekly report is on Monday. | The monthly report is on Friday.
Show times of orders in CET. | Show times of invoices in UTC.
The demo for Acme is on Friday. | The demo for Initech is on Monday.
# Endpoints, environments, regions
Add endpoint /users and limit it to 100 requests per minute. |
  Add endpoint /orders and limit it to 20 requests per minute.
/users accepts at most 100 requests. | /orders accepts at most 20 requests.
Staging runs in us-east-1. | Production runs in eu-west-2.
The timeout on staging is 5 seconds. | The timeout on production is now 9 seconds.
The canary region is us-east-1. | The disaster region is now eu-west-2.
The cart API lives at https://a.example. | The user API now lives at https://b.example.
# Ports by service
The web server listens on port 8080. | The metrics server listens on port 9090.
Redis runs on port 6379. | Kafka runs on port 9092.
Start the web server, and use port 8080. | Start the metrics server, and use port 9090.
Start the web server. Use port 8080. | Start the proxy. Use port 8080.
# Units and directions
Uploads have at most 5 files. | Uploads have at most 90 seconds.
The image has at least 5 files. | The image has at most 9 files.
Timeout for uploads is 30 seconds. | Timeout for downloads is 60 seconds.
The page has 20 rows. | The page is 40 px wide.
Create the red button and always make it 40 px wide. |
  Create the blue button and always make it 80 px wide.
Set the timeout to 5 seconds, for uploads. | Set the timeout to 9 seconds, for downloads.
Set the timeout to 5 seconds and apply it to reads. |
  Set the timeout to 9 seconds and apply it to writes.
Keep a.py under 100 lines. Never rename it. | Keep b.py under 120 lines. Never rename it.
Forward the report to server1. | Forward the report to server2.
# Branches, codes
Create the branch feature/a from main. | Create the branch feature/b from main.
The docs branch is docs/one-1. | The hotfix branch is now fix/two-2.
The key for Acme is AC-42x. | The key for Initech is IN-77y.
# The user's own limits on one thing and on a part of it
Keep functions under 40 lines. | Keep test functions under 80 lines from now on.
Keep test functions under 80 lines. | Keep functions under 40 lines from now on.
# Other languages
Der Timeout für Kunde Müller ist max 5 seconds. | Der Timeout für Kunde Möller ist max 9 seconds.
Die Datei a.py darf max. 100 lines haben. | Die Datei b.py darf max. 120 lines haben.
Die Frist für Aufgabe zwölf ist due 2026-12-01. | Die Frist für Aufgabe elf ist due 2026-12-24.
Das Budget für München ist $500. | Das Budget für Münster ist $900.
Le budget de Zoé est $500. | Le budget de Chloé est $900.
El deadline de España es 2026-12-01. | El deadline de Perú es 2026-12-24.
Лимит для склада: max 5 files. | Лимит для офиса: max 9 files.
客户A的 timeout 5 seconds. | 客户B的 timeout 9 seconds.
# Values that only name something, and things that are alike
Deploys to us-east-1 need two approvals. | Deploys to eu-west-1 need two approvals.
Tests for Python 3.11 must stay. | Tests for Python 3.12 must stay.
The docs for v1 are frozen. | The docs for v2 are frozen.
Revert commit 1a2b3c4. | Revert commit 9f8e7d6.
Protect branch release/1. | Protect branch release/2.
Drop Python 3.8. | Drop Python 3.9.
Never share token A1x. | Never share token B2y.
The key AC-1 must stay. | The key AC-2 must stay.
Block users in us-east-1. | Block users in eu-west-2.
Sync to us-east-1. | Sync to eu-west-2.
Notify Anna Berg about deploy approvals. | Notify Ben Ray about deploy approvals.
Set the size of box 5 to 10 rows. | Set the size of box 7 to 10 rows.
Make box 5 wide. | Make box 7 wide.
Requests of 5 seconds may have at most 10 lines. | Requests of 9 seconds may have at most 10 lines.
The report for Q1 is due in room 5. | The report for Q2 is due in room 5.
Call the client on Monday. | Call the client on Friday.
Meeting with Acme on 2026-12-01. | Meeting with Initech on 2026-12-03.
Support Node 18. | Support Node 20.
Releases on 2026-12-01 need a sign-off. | Releases on 2026-12-24 need a sign-off.
The $500 plan has at most 5 seats. | The $900 plan has at most 5 seats.
Uploads over 5 files must be logged. | Uploads over 9 files must be logged.
Team A is on call on Monday. | Team B is on call on Friday.
Anna Berg is on call on Mondays. | Ben Ray is on call on Fridays.
Anna Berg is on call in week 12. | Ben Ray is on call in week 13.
Anna Berg reviews a.py. | Ben Ray reviews b.py.
Anna Berg must approve schema changes. | Ben Ray must approve price changes.
Ask Anna Berg before you change the schema owner. | Ask Ben Ray before you change the schema owner.
The host db1.internal is read-only. | The host db2.internal is read-only.
https://a.example must stay reachable. | https://b.example must stay reachable.
The webhook of Acme is https://a.example. | The webhook of Initech is https://b.example.
Redis 7 must stay on server 1. | Redis 8 must stay on server 2.
In phase 1 of 4 use mocks. | In phase 2 of 4 use real data.
Step 1/4 must be idempotent. | Step 2/4 must be idempotent.
Emails should be formal. | Chats should be casual.
Titles should be short. | Footers should be long.
Answer Anna in German. | Answer Ben in English.
Write the emails in German. | Write the tickets in English.
Examples in Go must compile. | Examples in Rust must compile.
Python examples should be short. | Go examples should be long.
Report distances in miles. | Report temperatures in celsius.
Show prices in metric tons. | Show lengths in imperial feet.
The class Foo has at most 10 methods. | The class Bar has at most 20 methods.
Keep Foo under 100 lines. | Keep Bar under 100 lines.
Keep Foo under 100 lines. | Keep Bar under 200 lines.
Keep foo under 100 lines. | Keep bar under 200 lines.
Keep the user model under 100 lines. | Keep the project model under 200 lines.
The team budget is $500. | The week budget is $900.
The budget for this week is $500. | The budget for this month is $900.
The budget this week is $500. | The budget this year is $900.
Old clients time out after 5 seconds. | New clients time out after 9 seconds.
The old API lives at https://a.example. | The new API lives at https://b.example.
The first deadline is 2026-12-01. | The last deadline is 2026-12-24.
The internal label is ALPHA. | The external label is BETA.
Call the internal tool Falcon. | Call the public tool Osprey.
The table is called users. | The queue is called orders.
The working branch of repo a is feature/a-1. | The working branch of repo b is feature/b-1.
On the current branch use feature/x1. | On the base branch use feature/y1.
Region one is us-east-1. | Region two is eu-west-1.
The vault code of door 1 is ab-12. | The vault code of door 2 is cd-34.
The pin of Anna is 12ab. | The pin of Ben is 34cd.
The code of the safe is ab-12x. | The code of the gate is cd-34x.
The maintenance code is ab-12x. | The access code is cd-34x.
The read limit is 5 requests. | The write limit is 9 requests.
The soft limit is 5 files. | The hard limit is 9 files.
Retry at most 5 times. | Poll at most 9 times.
Wait 5 seconds before retries. | Wait 9 seconds before polls.
Wait 5 seconds before and 9 seconds after. | Wait 7 seconds before and 8 seconds after.
The min length is 5 characters. | The max length is 9 characters.
Names have at most 5 characters. | Emails have at most 9 characters.
GET /users has a limit of 100 requests. | POST /users has a limit of 20 requests.
get calls have a limit of 100 requests. | set calls have a limit of 20 requests.
Use port 3000 in dev. | Use port 4000 in prod.
In dev, the timeout is 5 seconds. | In test, the timeout is 9 seconds.
The morning backup runs for 5 minutes. | The evening backup runs for 9 minutes.
Today the limit is 5 files. | Tomorrow the limit is 9 files.
Before launch, the limit is 5 files. | After launch, the limit is 9 files.
With cache the timeout is 5 seconds. | Without cache the timeout is 9 seconds.
If it is cached, the timeout is 5 seconds. | If it is not cached, the timeout is 9 seconds.
Above 5 seconds log a warning. | Above 9 seconds log an error.
For me, the limit is 5 files. | For them, the limit is 9 files.
Your limit is 5 files. | My limit is 9 files.
Our budget is $500. | Their budget is $900.
The limit is 5 files for all. | The limit is 9 files for any admin.
Use up to 5 workers on weekdays. | Use up to 9 workers on weekends.
Always use port 3000. | Never use port 4000.
Kunde A hat ein Limit von 5 files. | Kunde B hat ein Limit von 9 files.
Das Budget von Anna ist $500. | Das Budget von Ben ist $900.
Die Deadline von Team Rot ist 2026-12-01. | Die Deadline von Team Blau ist 2026-12-24.
Am Montag ist der report due 2026-12-01. | Am Freitag ist der report due 2026-12-24.
La date limite du projet A est 2026-12-01. | La date limite du projet B est 2026-12-24.
El límite de a.py es max 5 lines. | El límite de b.py es max 9 lines.
Chapter one ends on March 3. | Chapter two ends on April 4.
Invoice 17 is due on March 3. | Invoice 18 is due on March 3.
Room 101 is at most 20 seats. | Room 102 is at most 30 seats.
Player 1 has at most 3 attempts. | Player 2 has at most 5 attempts.
Port 80 has a timeout of 5 seconds. | Port 443 has a timeout of 9 seconds.
IPv4 requests time out after 5 seconds. | IPv6 requests time out after 9 seconds.
Level 1 costs $5. | Level 2 costs $9.
100 users pay $5. | 200 users pay $9.
Apples cost $5. | Pears cost $9.
Ship to Anna by March 3. | Ship to Ben by April 4.
Ship the app by March 3. | Ship the docs by April 4.
#12 is due March 3. | #13 is due April 4.
@anna reviews the index. | @ben reviews the parser.
C has at most 80 columns. | C++ has at most 100 columns.
C# files have at most 80 columns. | F# files have at most 100 columns.
.env has at most 10 lines. | .gitignore has at most 20 lines.
a/b.py has at most 10 lines. | a/c.py has at most 20 lines.
The cell A1 has at most 10 characters. | The cell A2 has at most 20 characters.
The button "OK" is 5 px wide. | The button "No" is 9 px wide.
The <b> tag is 5 px wide. | The <i> tag is 9 px wide.
Use 5 workers for us. | Use 9 workers for them.
In May the limit is 5 files. | In June the limit is 9 files.
In March the budget is $500. | In April the budget is $900.
Will may use up to 5 workers. | Mark may use up to 9 workers.
Before 9:00 use up to 5 workers. | After 9:00 use up to 9 workers.
On macOS use up to 5 workers. | On iOS use up to 9 workers.
From a.py import at most 5 items. | From b.py import at most 9 items.
The limit was set by Anna: 5 files. | The limit was set by Ben: 9 files.
Not for admins: the limit is 5 files. | Not for guests: the limit is 9 files.
The tax rate in Peru is 5%. | The tax rate in Chile is 9%.
The width of the box is 5 px. | The height of the box is 9 px.
The box is 5 px wide. | The box is 9 px high.
The size of the header is 5 px. | The length of the header is 9 px.
The timeout is 5 seconds. | The interval is 9 seconds.
The minimum interval is 5 seconds. | The maximum length is 9 seconds.
The connect timeout is 5 seconds. | The read timeout is 9 seconds.
The time limit is 5 minutes. | The size limit is 9 files.
The maximum time is 5 seconds. | The timeout is 9 seconds.
The launch is on March 3. | The freeze is on April 4.
The demo is due on March 3. | The review is due on April 4.
The start date is March 3. | The end date is April 4.
The opening date is March 3. | The closing date is April 4.
The travel budget is $500. | The food budget is $900.
The fee is $5. | The price is $9.
The fee is $5. | The budget is $900.
The cost per unit is $5. | The total cost is $900.
Total spending is $500. | Spending per day is $50.
Project spending ceiling is $600. | Conference spending ceiling is $300.
The lead is Anna Berg. | The contact is Ben Ray.
The owner is Anna Berg. | The maintainer is Ben Ray.
The approver is Anna Berg. | The reviewer is Ben Ray.
The phase is 1 of 4. | The step is 2 of 9.
The password is hunter-42. | The access code is tiger-77.
The url is https://a.example. | The host is b.internal.
The address is https://a.example. | The endpoint is https://b.example.
Write examples in Go. | Write code in Rust.
Write answers in German. | Write code in English.
The snippet language is Go. | The reply language is German.
The tone of the blog is casual. | The tone of the docs is formal.
Answers should be short. | Explanations should be long.
Status times in UTC. | Log times in CET.
The branch is feature/a-1. | The base branch is release/b-2.
Working branch is feature/a-1. | Base branch is release/b-2.
The current branch is feature/a-1. | The development branch is feature/b-2.
The base commit is 1a2b3c4. | The head commit is 9f8e7d6.
The branch head is 1a2b3c4. | The work base is 9f8e7d6.
Support duty belongs to Anna Berg. | Pager duty belongs to Ben Ray.
Anna Berg owns the rotation. | Ben Ray handles escalation.
The finance budget is $500. | The project budget is $900.
The maintenance code is ab-12x. | The confirmation code is cd-34x.
The runtime version is 3.1. | The target version is 4.2.
# Prohibitions, and what is on one side only
The marketing budget is $5,000. | The engineering budget is $20k.
Never delete the users table. | Never delete the orders table.
Do not touch src/auth.py. | Do not touch src/billing.py.
Ticket ABC-123 must stay open. | Ticket ABC-124 must stay open.
Commit messages should be short. | Answers should be detailed.
Server logs use UTC. | Report times to me in Pacific time.
The metrics server listens on port 9100. | The service listens on port 8080.
The staging URL is https://a.example. | The production URL is https://b.example.
Primary on-call is Alice Brown. | Secondary on-call is Bob Green.
The wifi password is blue-77. | The door code is KITE-88.
Pin numpy to 1.26. | Pin pandas to 2.1.
At least 2 approvals are required. | At most 5 approvals are required.
Never deploy to eu-west-1. | Never deploy to us-east-1.
Do not deploy on Fridays. | Do not deploy on Mondays.
Do not plan anything for May 3. | Do not plan anything for May 4.
Never use Python 3.9. | Never use Python 3.10.
Do not rename table_1. | Do not rename table_2.
Nobody may push to main. | Nobody may edit the schema.
No new dependencies. | No schema changes.
No peanuts in the kitchen. | No shellfish in the kitchen.
Backups are kept for 30 days. | Nightly backups are kept for 7 days.
Audit lines go to the topic audit.a.v502. | Errors go to the topic errors.a.v502.
The API rate limit is 100 requests per minute. | The API rate limit is 250 requests now.
The page size is 238 rows. | Make the page size 854 rows, the customer asked for it.
""")

SAME = _pairs("""
Spend at most $500 on test runs. | Spend at most $900 on test runs.
The budget is $500 for test runs. | The budget is now $900 for test runs.
Our spending cap is $700. | Keep spending under four hundred dollars from now on.
The API rate limit is 100 requests per minute. | The API rate limit is 250 requests per minute now.
Use Node 18. | We upgraded: use Node 20.1 from now on.
Our production region is us-east-1. | Production moved to eu-west-2.
Hotel costs must not exceed $200. | Keep hotel spending under three hundred dollars.
The deadline for the docs is March 3. | Documentation is now due on 2027-04-01.
The demo is on Friday. | The demo moved to Monday.
Keep lines under 100 characters. | Line length limit is 88 characters.
The admin password is hunter-42. | We rotated the admin password: it is tiger-77.
Maria Lopez approves releases. | Releases are approved by John Smith now.
Please answer briefly: short, formal answers. | I'd prefer detailed, friendly answers.
Show times in CET. | Display all timestamps in America/New_York.
The service listens on port 8080. | The service now listens on port 9090.
The project is called Falcon. | We renamed the project to Osprey.
We are on branch feature/login-2. | Switched to feature/login-3.
Base everything on commit 1a2b3c4. | Rebase: the base commit is now 9f8e7d6.
Write the examples in Go. | Examples should be in Rust from now on.
The API base URL is https://a.example/v1. | The API moved to https://b.example/v2.
Alice Brown is on call this week. | Bob Green takes over the pager.
Next step: write the migration. | Next up: backfill the index.
We're in phase 1 of 4 of the rollout. | Rollout is at phase 2 of 4.
Timeout for uploads is 30 seconds. | Uploads should time out after 2 minutes.
Coverage must be at least 80%. | Raise the coverage minimum to 90%.
Use tabs for indentation. | Use four spaces for indentation.
Make the page size 649 rows. | Page size: 279 rows from here on.
The request timeout must be 90 ms. | Let's go to a request timeout of 126 ms instead.
Keep file_a.py under 100 lines. | Keep file_a.py under 120 lines from now on.
Table users has at most 100 columns. | Table users has at most 20 columns.
Set the timeout of client A1 to 5 seconds. | Set the timeout of client A1 to 9 seconds.
src/a.ts must use port 3000. | src/a.ts must use port 4000.
The deadline for task 12 is 2026-12-01. | The deadline for task 12 is 2026-12-24.
Acme's budget is $500. | Acme's budget is now $900.
The weekly report is on Monday. | The weekly report is on Friday.
Raise the timeout to 30 seconds. | Raise the timeout from 30 seconds to 60 seconds.
Use tabs for indentation in Go. | Use spaces for indentation in Go.
Staging runs in us-east-1. | Staging now runs in eu-west-2.
""")
