import type { TakeoverVerdict } from "@nodeyard/legacy";
import { plain } from "@nodeyard/operations/listing";
import { Drivers, loadModule, openConfig, startTakeover } from "@nodeyard/process";
import { settledWithin } from "@nodeyard/runtime";
import type { Command } from "commander";
import { parseDuration } from "../arguments.ts";
import { CommandError, CommandFailed, TimedOut } from "../errors.ts";
import { printJson } from "../listing.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, withTree } from "../session.ts";

interface TakeoverOptions {
  readonly back?: boolean;
  readonly check?: boolean;
  readonly idle?: boolean;
  /** Path of the other launcher's file. */
  readonly from?: string;
  /** Milliseconds. */
  readonly timeout?: number;
  readonly json?: boolean;
}

/** Between two looks while no event comes, milliseconds: sessions of launchers end without one that names the provider. */
const LOOK_MS = 10_000;
const DAY_MS = 86_400_000;
const MARKS = { stop: "STOP", wait: "wait", note: "note", step: "NEXT" } as const;

/** `nodeyard takeover`: follows a move until it is done. It writes nothing: operators change files and processes. */
export function defineTakeover(command: Command, session: Session): void {
  command
    .argument("<provider>", "name of the provider that changes its launcher")
    .option("--back", "from Nodeyard to Nodepool")
    .option(
      "--check",
      "look once: exit code 0 if the next step is safe, or all is done; 1 if something has to end first",
    )
    .option(
      "--idle",
      "before the first step, wait for launches, deletions and requests that a launcher has taken",
    )
    .option("--from <file>", "the file of Nodepool's launcher, to compare the two")
    .option("--timeout <duration>", "stop following after this time, exit code 124", parseDuration)
    .option("--json", "an object for each change on stdout: done, safe, findings with level, code and text")
    .addHelpText(
      "after",
      "\nSays what is safe, what has to end first and what to do next, and again after each change, until the provider is served by Nodeyard alone and" +
        "\nnone of its nodes and requests is left behind. -c names Nodeyard's file. Writes nothing.",
    )
    .action((provider: string, options: TakeoverOptions) => takeover(session, provider, options));
}

async function takeover(session: Session, provider: string, options: TakeoverOptions): Promise<void> {
  const { io, machine } = session;
  const { back = false, check = false, idle = false, from, timeout = DAY_MS, json = false } = options;
  const drivers = new Drivers(loadModule);
  const files = filesOf(session);
  const { config } = await openConfig(files, machine, drivers);
  const other =
    from === undefined ? undefined : (await openConfig({ ...files, path: from }, machine, drivers)).config;
  await withTree(
    session,
    async ({ tree }) => {
      const to = back ? "python" : "nodeyard";
      const log = logOf(session).area("launcher");
      const running = await startTakeover({ tree, config, other, drivers, log, provider, to, idle }, machine);
      const begun = machine.clock.monotonic();
      try {
        for (let shown = ""; ; ) {
          const verdict = await running.look();
          const text = JSON.stringify(verdict);
          if (text !== shown) print(verdict);
          shown = text;
          if (verdict.done) return;
          const stop = verdict.findings.find(({ level }) => level === "stop");
          if (stop !== undefined)
            throw new CommandError("cli.takeover_unsafe", `provider ${provider} is not moved: ${stop.text}`);
          if (check && verdict.safe) return;
          if (check) throw new CommandFailed(1);
          const left = timeout - (machine.clock.monotonic() - begun);
          if (left <= 0)
            throw new TimedOut(
              `provider ${provider} is not taken over after ${timeout / 1_000} s (--timeout)`,
            );
          await settledWithin(machine.clock, Math.min(LOOK_MS, left), running.changed());
        }
      } finally {
        await running.close();
      }
    },
    { drivers, readsOnly: true },
  );

  function print(verdict: TakeoverVerdict): void {
    if (json) return printJson(io, verdict);
    for (const { level, text } of verdict.findings) io.out(`${MARKS[level]}: ${plain(text)}\n`);
    io.out(verdict.done ? "done\n" : `${verdict.safe ? "safe" : "not yet"}\n\n`);
  }
}
