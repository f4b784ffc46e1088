import { plain } from "@nodeyard/operations/listing";
import { settledWithin } from "@nodeyard/runtime";
import type { Backend, BuildRow, Progress } from "./backend/backend.ts";
import { CommandError, TimedOut } from "./errors.ts";
import type { Session } from "./session.ts";

/**
 * Between two looks while no event comes, milliseconds. Only for what no event of the tree tells: the builder's progress and its
 * reason.
 */
const LOOK_MS = 10_000;
/**
 * A free builder begins within this time, milliseconds; a reason that builders give before it may describe the state before the
 * request.
 */
const BEGIN_MS = 2_000;

/**
 * Waits for the first build that is not one of `before` to end, and resolves with it, "ready" or "failed". Until a build begins,
 * prints what it waits for. Ctrl-C ends the process, and the request stays in the tree. Rejects with CommandError when the image
 * is paused, with TimedOut after `timeoutMs`, or with the error of the backend.
 * `before`: ids of the builds that were read before the request was written: a build that another request began in between
 * counts as an answer, one that had begun earlier does not.
 */
export async function awaitBuild(
  { machine, io }: Session,
  backend: Backend,
  image: string,
  before: ReadonlySet<string>,
  timeoutMs: number,
): Promise<BuildRow> {
  let changed = Promise.withResolvers<void>();
  const watching = backend.watch(["image"], () => changed.resolve());
  let shown = "";
  const asked = machine.clock.monotonic();
  try {
    for (;;) {
      const elapsed = machine.clock.monotonic() - asked;
      const isEarly = elapsed < BEGIN_MS;
      const { rows } = await backend.list("list_builds", { image });
      const fresh = rows.filter(({ id }) => !before.has(id));
      // Another build may begin before this look: the first that has ended counts, whichever that is.
      const done = fresh.find(({ state }) => state === "ready" || state === "failed");
      if (done !== undefined) return done;
      const [first] = fresh;
      if (elapsed >= timeoutMs)
        throw new TimedOut(
          `no build of ${image} ended within ${timeoutMs / 1_000} s (--timeout); the request stands, and "nodeyard explain image ${image}" says how far it is`,
        );
      // Builders are asked only while no build is there: each question is a write to the tree, and waits for all that answer.
      const kept = first === undefined && !isEarly ? await whatKeepsIt(backend, image) : undefined;
      const now =
        kept ?? (first === undefined ? "waiting for a builder" : await howFar(backend, image, first.id, io));
      // The reason may need an operator, so it is printed in a script's log, too.
      if (now !== shown && (io.isTerminal || kept !== undefined)) io.err(`${now}\n`);
      shown = now;
      // A lost event delays, never loses; nothing tells when what keeps it changes.
      await settledWithin(
        machine.clock,
        Math.min(isEarly ? BEGIN_MS : LOOK_MS, timeoutMs - elapsed),
        changed.promise,
      );
      changed = Promise.withResolvers();
    }
  } finally {
    await watching.close();
  }
}

/** Why no build begins, by the builders' own word; undefined when one is about to. Throws CommandError for a paused image. */
async function whatKeepsIt(backend: Backend, image: string): Promise<string | undefined> {
  const { explanation: story } = await backend.explain({ kind: "image", id: image });
  const wait = story?.waits_for;
  if (story === undefined || wait == null || wait.code === "image.due") return undefined;
  // A pause has no end that could be waited for.
  if (wait.code === "image.paused") throw imagePaused(image, "the request stands");
  return `waiting: ${wait.meaning} (${wait.code}). ${story.next}`;
}

/** For a pause that was set before or during the wait. `request`: what became of the request, in words. */
export function imagePaused(image: string, request: string): CommandError {
  return new CommandError(
    "cli.diskimage_paused",
    `diskimage ${image} is paused, so no build of it begins (${request}): nodeyard image-unpause ${image}, or remove "pause: true" from the builders' configuration`,
  );
}

/** The builder's report on the build; asked only when the output is a terminal, since asking is a write to the tree. */
async function howFar(backend: Backend, image: string, build: string, io: Session["io"]): Promise<string> {
  const name = `building ${build}`;
  if (!io.isTerminal) return name;
  const work = await backend.progress(image, build);
  return work === undefined ? name : `${name}  ${plain(progressText(work))}`;
}

/** Decimal, as providers and disk makers count. */
const MB = 1_000_000;

/**
 * The progress of a build or upload in one line: phase, amount, rate and time left. "1:05: upload; 120 of 900 MB, 4.2 MB/s, 3:05
 * left".
 */
export function progressText(progress: Progress): string {
  const { phase, bytes, total_bytes: total, eta_seconds: eta } = progress;
  const size = total === null ? `${megabytes(bytes)} MB` : `${megabytes(bytes)} of ${megabytes(total)} MB`;
  const rate = `${(progress.bytes_per_second / MB).toFixed(1)} MB/s`;
  const left = eta === null ? "" : `, ${minutes(eta)} left`;
  return `${minutes(progress.elapsed_seconds)}: ${phase ?? ""}; ${size}, ${rate}${left}`;
}

function megabytes(bytes: number): string {
  return (bytes / MB).toFixed(0);
}

/** Minutes without limit, so that a build of two hours reads "120:00". */
function minutes(time: number): string {
  const seconds = Math.round(time);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
