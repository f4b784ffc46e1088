import { DriverError, type ExternalId, type LabelConfig, type Tag } from "@nodeyard/driver";
import { deadline, messageOf } from "@nodeyard/runtime";
import { inTime } from "../../coordination/index.ts";
import type { Handles, OpenProvider } from "../handles.ts";

/** For the cloud to hand a console over, milliseconds. */
const READ_MS = 30_000;
/** The end of a console is what tells. */
const MOST_CHARS = 16_384;
const MOST_LINES = 200;

interface ConsoleTail {
  readonly lines: readonly string[];
  /** Whether there was more before. */
  readonly cut: boolean;
}

/** The last lines of a console, without what a terminal would obey: it is text from outside. Pure. */
export function consoleTail(text: string): ConsoleTail {
  const end = text.slice(-MOST_CHARS);
  const lines = end
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
    .replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "")
    .split(/\r\n|[\r\n]/)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
    .map((line) => line.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "").trimEnd())
    .filter((line) => line !== "");
  return { lines: lines.slice(-MOST_LINES), cut: end.length < text.length || lines.length > MOST_LINES };
}

/**
 * Keeps what a machine that did not come up wrote to its console, before the machine is removed: for labels with
 * `console-log`, in the log and in the journal. Never rejects, but with the reason of `signal`.
 */
export async function keepConsole(
  context: Handles,
  open: OpenProvider,
  label: LabelConfig,
  of: { readonly tag: Tag; readonly node: string; readonly request: string; readonly attempt: number },
  externalId: ExternalId | null,
  signal: AbortSignal,
): Promise<void> {
  const { console: consoles } = open.provider.offers ?? {};
  if (label.consoleLog !== true || consoles === undefined) return;
  const { tag, node, request, attempt } = of;
  const late = () => new DriverError("timeout", `no console within ${READ_MS} ms`);
  const limit = deadline(context.clock, READ_MS, late, signal);
  try {
    const read = consoles.read(tag, { signal: limit.signal, externalId });
    // A driver that ignores its signal holds nothing up either.
    const text = await inTime(context.clock, READ_MS, read, late);
    if (text === null) return;
    const { lines, cut } = consoleTail(text);
    for (const line of lines) context.log.info({ node, request, attempt, line }, "console");
    context.journal.write({ event: "node.console", node, facts: { request, attempt, cut, lines } });
  } catch (error) {
    signal.throwIfAborted();
    context.log.warn({ node, request, error: messageOf(error) }, "cannot read the console of a node");
  } finally {
    limit.cancel();
  }
}
