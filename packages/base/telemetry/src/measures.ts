/** What a metric says, and its labels. */
export interface Measure<Labels extends readonly string[] = readonly string[]> {
  /** One sentence: Prometheus' help text and the text of the reference. */
  readonly help: string;
  /** Names of its labels, in the order in which they are written. */
  readonly labels: Labels;
}

/** A duration, with where its histogram is cut, seconds. */
export interface DurationMeasure<
  Labels extends readonly string[] = readonly string[],
  Details extends readonly string[] = readonly string[],
> extends Measure<Labels> {
  /** Reported to listeners only: too many distinct values to keep. */
  readonly details: Details;
  /** Upper ends of the buckets, seconds, rising; the last one, infinity, is implied. */
  readonly buckets: readonly number[];
}

function by<const Labels extends readonly string[]>(help: string, ...labels: Labels): Measure<Labels> {
  return { help, labels };
}

/** Every counter of the program. An unregistered name, or a label that is not its own, does not compile. */
export const counterNames = {
  "view.records_skipped": by("Records that could not be read, with the error code", "kind", "code"),
  "view.gaps": by("Times that changes of the tree were missed, and all below a root was read again", "root"),
  "config.reloads": by(
    "Times that the configuration files were read: `loaded`, `refused` because of what they say, or `failed` to be applied",
    "result",
  ),
  "connect.runners": by(
    "Runners of a CI that ended: `done` with their job, `surplus` because no job waited any more, or `failed`",
    "connector",
    "end",
  ),
  "connect.calls": by(
    "Calls of a CI that a connector answered or made, by what came of them",
    "connector",
    "call",
    "result",
  ),
  "journal.events": by("Events for the journal: `written`, or `dropped` because they could not be", "result"),
  "log.lines_dropped": by(
    "Lines of the log dropped because the disk, or the reader of the pipe, was too slow",
  ),
  "journal.write_failures": by("Batches of events that the journal could not write"),
  "scheduler.turns": by("Turns of the scheduler's loop"),
  "launcher.requests": by("Requests that ended here", "outcome"),
  "launcher.launches": by("Launch attempts that ended", "provider", "result"),
  "launcher.breakers": by("Breakers that opened or closed", "provider", "change"),
  "launcher.label_budgets": by(
    "Labels whose budget of failed launches was spent, or that work again",
    "label",
    "change",
  ),
  "launcher.budgets": by(
    "Budgets of tenants that came to four fifths (`near`), were `used` up, or have room again (`free`)",
    "tenant",
    "level",
  ),
  "launcher.cost": by(
    "What nodes cost that are gone, as far as their price was known; without a tenant: while they were nobody's",
    "label",
    "tenant",
    "currency",
  ),
  "launcher.slots": by(
    "Slots of backing nodes claimed, lost to another launcher or freed",
    "provider",
    "change",
  ),
  "launcher.backing_nodes": by("Backing nodes asked for, adopted, failed or released", "provider", "change"),
  "launcher.launches_saved": by(
    "Nodes that were given to a request after another use, in place of a launch",
    "provider",
    "label",
  ),
  "launcher.deletes": by("Node deletions that ended", "provider", "result"),
  "launcher.dead_letters": by("Nodes marked because they could not be deleted in many tries", "provider"),
  "launcher.provider_silent": by("Calls of drivers that were not answered in time", "provider", "call"),
  "launcher.vanished": by("Ready nodes taken out because their machines were gone", "provider"),
  "launcher.leaked": by("Leaked resources deleted", "provider", "type"),
  "launcher.leak_brake": by(
    "Leak sweeps that deleted nothing because they would have deleted too much",
    "provider",
  ),
  "launcher.sweeps_suspended": by(
    "Leak sweeps that deleted nothing because a record that may belong to their provider cannot be read",
    "provider",
  ),
  "launcher.fence_lost": by("Work given up because a lock or a record was no longer ours", "kind"),
  "builder.builds": by("Image builds that ended", "image", "result"),
  "builder.uploads": by("Image uploads that ended", "image", "provider", "result"),
  "builder.retired": by("Uploads, builds and local files removed", "kind"),
  "builder.canaries": by("Trials of builds that ended", "image", "verdict"),
  "builder.leak_brake": by(
    "Sweeps of images that deleted nothing because they would have deleted too much",
    "provider",
  ),
  "builder.unexpected": by("Unexpected errors of builders", "place"),
  "launcher.unexpected": by("Unexpected errors", "place"),
} as const satisfies Readonly<Record<string, Measure>>;

// Buckets where the answers lie: launches are close together between half a minute and two, and each bucket is a series per label set.
const LAUNCH = [1, 2.5, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 120, 150, 180, 300, 600, 900, 1_800];
const BUILD = [30, 60, 120, 300, 600, 900, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800];
const UPLOAD = [1, 5, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600];
const WAIT = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600];
const CALL = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

function timed<const Labels extends readonly string[], const Details extends readonly string[] = readonly []>(
  help: string,
  buckets: readonly number[],
  labels: Labels,
  details?: Details,
): DurationMeasure<Labels, Details> {
  return { help, labels, details: details ?? ([] as unknown as Details), buckets };
}

/** Every duration of the program. */
export const durationNames = {
  "launcher.launch": timed(
    "From the first attempt of a launch to the end of this one, without the time in the provider's queue",
    LAUNCH,
    ["provider", "az", "result"],
    ["requestor", "step"],
  ),
  "launcher.wake": timed("From the claim of a suspended spare until it answers again", LAUNCH, [
    "provider",
    "result",
  ]),
  "launcher.check": timed(
    "Checks of nodes that were given back, to be used again: `passed`, or `failed`",
    LAUNCH,
    ["provider", "result"],
  ),
  "launcher.request": timed("From the creation of a request to its fulfilment", WAIT, ["provider", "pool"]),
  "launcher.provider_call": timed("Calls of drivers: queries, and each step of creating and deleting", CALL, [
    "provider",
    "call",
    "result",
  ]),
  "provider.api_call": timed(
    "Requests to a cloud's API, one for each try; `result` is the HTTP status, or `none`",
    CALL,
    ["provider", "operation", "result"],
  ),
  "builder.build": timed("Image builds, until the command and conversions have ended", BUILD, [
    "image",
    "result",
  ]),
  "builder.upload": timed("Image uploads, with the hook after them", UPLOAD, ["image", "provider", "result"]),
} as const satisfies Readonly<Record<string, DurationMeasure>>;

/** Measures whose last value counts. */
export const levelNames = {
  "builder.exit_code": by("Exit code of the last build; 1 if it took too long", "image"),
  "builder.image_size": by("Bytes on the disk of the last build that became ready", "image", "format"),
  "config.last_reload_successful": by(
    "1 if the configuration and certificate in force are what the files say, 0 if they were refused",
  ),
  "config.last_reload_success": by("When the configuration in force was read, seconds since the epoch"),
  "config.file_modified": by("When the configuration files were last written, seconds since the epoch"),
  "journal.size": by("Bytes of the journal's file"),
  "journal.last_write": by("When events were last written to the journal, seconds since the epoch"),
  "builder.last_run": by("When the last build ended, successful or not, seconds since the epoch", "image"),
} as const satisfies Readonly<Record<string, Measure>>;

/** Names of counters, which only grow; a name outside the table does not compile. */
export type CounterName = keyof typeof counterNames;
/** Names of times, milliseconds. */
export type DurationName = keyof typeof durationNames;
/** Names of figures that go up and down. */
export type LevelName = keyof typeof levelNames;

/** One text for each label. */
type Valued<Labels extends readonly string[]> = Readonly<Record<Labels[number], string>>;

export type CounterLabels<Name extends CounterName> = Valued<(typeof counterNames)[Name]["labels"]>;
export type LevelLabels<Name extends LevelName> = Valued<(typeof levelNames)[Name]["labels"]>;
export type DurationLabels<Name extends DurationName> = Valued<(typeof durationNames)[Name]["labels"]> &
  Valued<(typeof durationNames)[Name]["details"]>;
