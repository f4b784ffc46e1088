import { beforeEffect } from "@nodeyard/coordination";
import type { Timer } from "@nodeyard/runtime";
import type { HeldLock } from "@nodeyard/tree";
import { conversions } from "../core/convert.ts";
import { baseName } from "../core/files.ts";
import { type BuildCommand, type BuildOrder, commandOf } from "../runs/back-ends.ts";
import type { Intent, Running } from "../runs/disk.ts";
import type { BuilderContext } from "./context.ts";
import { type Page, phaseIn } from "./progress.ts";

/** Between two looks at size and log of a running build, milliseconds. */
const LOOK_MS = 1_000;

/**
 * Runs a build to its end: the back end's command, then what converts its result. What went wrong in one line; undefined: every
 * format is there. `signal`, the image's time limit and the loss of the session end it.
 */
export async function runBuild(
  context: BuilderContext,
  held: HeldLock,
  order: BuildOrder,
  intent: Intent,
  page: Page,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { disk, settings, counters } = context;
  const { image, build, formats, base } = order;
  const log = await disk.newLog(settings.logDir, image.name, build, settings.logRetention);
  const ender = new Ender(context, held, image.buildTimeoutMs, signal);
  const stopWatching = watch(context, intent, log, page);
  const run = async (command: BuildCommand): Promise<string | undefined> => {
    await beforeEffect(context, held);
    const { code } = await ender.run(await disk.start(command, intent, log));
    counters.level("builder.exit_code", ender.why === undefined ? code : 1, { image: image.name });
    if (ender.why !== undefined) return ender.why;
    await disk.appendLog(log, `Exit code: ${code}`);
    if (code === 0) return undefined;
    return `exit code ${code}; its log is ${log}, which ends: ${phaseIn(withoutExit(await disk.tail(log)))}`;
  };
  try {
    const command = commandOf(order);
    const failure = await run(command);
    if (failure !== undefined) return failure;
    const name = baseName(image.name, build);
    const lacking = await disk.settle(name, formats);
    const present = (await disk.list()).find(({ intent: own }) => own.build === build)?.formats ?? [];
    // After the command, not instead: what the command has made counts.
    for (const argv of conversions(base, lacking, present)) {
      const failed = await run({ argv, env: command.env });
      if (failed !== undefined) return failed;
    }
    const missing = lacking.length === 0 ? [] : await disk.settle(name, formats);
    if (missing.length > 0)
      return `the build command succeeded without ${missing.map((format) => `${base}.${format}`).join(", ")}`;
    const spare = present.filter((format) => !formats.includes(format));
    // Formats that only served as a source of conversions.
    if (lacking.length > 0) await disk.removeFormats(name, spare);
    return undefined;
  } finally {
    stopWatching();
    ender.close();
  }
}

/**
 * Ends the running program at its deadline, when the builder stops, or when its lock is lost. One for all programs of a build, so
 * that they share the time limit.
 */
class Ender {
  /** Why it was ended; undefined: it was not. */
  why: string | undefined;
  #running: Running | undefined;
  readonly #undo: readonly (() => void)[];

  constructor({ clock, tree }: BuilderContext, held: HeldLock, limitMs: number, signal: AbortSignal) {
    const late = clock.setTimer(limitMs, () => this.#end(`it took longer than ${limitMs / 1000} s`));
    const onAbort = () => this.#end("the builder is stopping");
    signal.addEventListener("abort", onAbort, { once: true });
    // Another builder may have begun by now: the lock went with the session.
    const unsubscribe = tree.onSession(({ epoch, state }) => {
      if (epoch !== held.epoch || state === "expired") this.#end("the session with the tree was lost");
    });
    this.#undo = [() => late.cancel(), () => signal.removeEventListener("abort", onAbort), unsubscribe];
    if (signal.aborted) onAbort();
  }

  /** A program that was started after the end is killed at once. */
  run(running: Running): Running["ended"] {
    this.#running = running;
    if (this.why !== undefined) running.kill();
    return running.ended;
  }

  /** Ends the timer and the listeners, not the program. */
  close(): void {
    for (const undo of this.#undo) undo();
  }

  /** The first reason counts: the others follow from it. */
  #end(why: string): void {
    this.why ??= why;
    this.#running?.kill();
  }
}

/** Tells the page how far it is, until the returned function is called. */
function watch({ clock, disk }: BuilderContext, intent: Intent, log: string, page: Page): () => void {
  let timer: Timer | undefined;
  let ended = false;
  const look = async () => {
    const [bytes, tail] = await Promise.all([disk.used(intent), disk.tail(log)]);
    page.update({ bytes, phase: phaseIn(tail) });
  };
  const again = () => {
    if (ended) return;
    timer = clock.setTimer(LOOK_MS, () => {
      // Only for people's eyes: a file that went in between is looked at again.
      look().then(again, again);
    });
  };
  again();
  return () => {
    ended = true;
    timer?.cancel();
  };
}

/** The line that the builder itself has added says nothing of the cause. */
function withoutExit(tail: string): string {
  return tail.replace(/Exit code: -?\d+\n$/, "");
}
