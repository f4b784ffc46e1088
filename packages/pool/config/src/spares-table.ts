import { type Grammar, Is, Key } from "@nodeyard/driver";
import { cronOf } from "@nodeyard/scheduler";

const calendar = (
  write: string,
  holds: (text: string) => boolean,
  right: string[],
  wrong: string[],
): Grammar => Is.textLike(write, holds, [right, wrong]);

const works = (cron: string, timezone: string): boolean => {
  try {
    cronOf({ cron, timezone });
    return true;
  } catch {
    return false;
  }
};

/** The last ones: 30 February, and a list without a field. */
const CRON = calendar(
  "minute, hour, day of the month, month and day of the week, as in 45 8 * * mon-fri",
  (cron) => works(cron, "UTC"),
  ["45 8 * * mon-fri", "0 */2 * * *", "@daily"],
  ["8:45", "61 8 * * *", "45 8 * *", "0 0 30 2 *"],
);
/** Also where a month of a budget begins. */
export const TIMEZONE = calendar(
  "a time zone of the IANA list, as in Europe/Berlin",
  // Without a name croner would take the time zone of the machine.
  (timezone) => timezone !== "" && works("@daily", timezone),
  ["Europe/Berlin", "UTC"],
  ["Middle/Earth", ""],
);
const PERCENT = Is.whole(1, 100, "percent");
const COUNT = { default: 0, like: Is.whole(0) } as const;

/** Labels' `spares`: see `SparePolicy` of the scheduler. */
export const sparesTable = {
  min: Key.integer("At least so many.", COUNT),
  max: Key.integer("At most so many.", { ...Key.NO_LIMIT, like: Is.whole(0) }),
  share: Key.integer("Of the nodes of the label in use, rounded up.", { ...COUNT, unit: "%" }),
  times: Key.entries(
    Key.section({
      cron: Key.text("The moment from which on the number holds, until the next moment of any entry.", {
        needed: true,
        like: CRON,
      }),
      timezone: Key.text("Where that is the time.", { default: "UTC", like: TIMEZONE }),
      spares: Key.integer("So many from then on.", { needed: true, like: Is.whole(0) }),
    }),
    "Numbers by the time of day. A launch takes its time: to be ready at nine, write a quarter to nine.",
  ).map((times) => times.map(({ at: _, ...time }) => time)),
  target: Key.optional(
    "So many that requests seldom wait, by what was asked for in the last hour and in the hour that came a week ago.",
    {
      wait: Key.anySeconds("Such a wait is short enough.", { default: 5, like: Is.FROM_0 }).as("withinMs"),
      percent: Key.integer("Of the requests that wait no longer.", { default: 95, unit: "%", like: PERCENT }),
      "budget-per-hour": Key.number(
        "Most that spares of the target may cost, in the currency of the prices; without a known price there are none. Absent: no limit.",
        { like: Is.FROM_0 },
      ),
    },
  ),
  state: Key.choice(
    "`suspended`: put aside with their disk where the driver can, so that they cost less and take seconds to wake; `min-ready` says how many run besides.",
    ["running", "suspended"],
  )
    .as("suspended")
    .map((state) => state === "suspended"),
  idle: Key.seconds("A free node beyond the number is deleted when it has been free for so long.", {
    default: 600,
    like: Is.FROM_0,
  }).as("idleMs"),
};
