import type { ConsoleEnd } from "@nodeyard/asking";
import { type Console, DriverError, type ExternalId, type LabelConfig, type Tag } from "@nodeyard/driver";
import type { NodeRecord } from "@nodeyard/model";
import { type Clock, deadline, messageOf } from "@nodeyard/runtime";
import type { Handles, OpenProvider } from "../handles.ts";
import { tagOf } from "./tag.ts";

/** For the cloud to hand a console over, milliseconds. */
const READ_MS = 30_000;
/** The most of a console that is kept, from its end: the last lines say why a boot stopped. */
const MOST_CHARS = 16_384;
const MOST_LINES = 200;

/** The last lines of a console, without what a terminal would obey: it is text from outside. Pure. */
export function consoleTail(text: string): Pick<ConsoleEnd, "lines" | "cut"> {
  const end = text.slice(-MOST_CHARS);
  const lines = end
    // Escape sequences of terminals: colours, cursor movements. The rest of the control characters goes line by line.
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
  try {
    const text = await readConsole(context.clock, consoles, tag, externalId, READ_MS, signal);
    if (text === null) return;
    const { lines, cut } = consoleTail(text);
    for (const line of lines) context.log.info({ node, request, attempt, line }, "console");
    context.journal.write({ event: "node.console", node, facts: { request, attempt, cut, lines } });
  } catch (error) {
    signal.throwIfAborted();
    context.log.warn({ node, request, error: messageOf(error) }, "cannot read the console of a node");
  }
}

/**
 * Null: the machine has no console now. Rejects with the driver's error, with a DriverError of kind "timeout", or with the signal's
 * reason.
 */
async function readConsole(
  clock: Clock,
  consoles: Console,
  tag: Tag,
  externalId: ExternalId | null,
  withinMs: number,
  signal?: AbortSignal,
): Promise<string | null> {
  const late = () => new DriverError("timeout", `no console within ${withinMs} ms`);
  using limit = deadline(clock, withinMs, late, signal);
  return await consoles.read(tag, { signal: limit.signal, externalId });
}

/** For the cloud to hand over a console that a person waits for, milliseconds. */
const LOOK_MS = 8_000;

/** The end of the console of a node, as its machine is now. Undefined: this launcher does not serve its provider. Never rejects. */
export async function lookAtConsole(
  handles: { readonly clock: Clock; readonly installation: string },
  providers: ReadonlyMap<string, OpenProvider>,
  record: NodeRecord,
): Promise<ConsoleEnd | undefined> {
  const { id, provider: name, externalId } = record;
  const open = providers.get(name ?? "");
  if (open === undefined || name === null) return undefined;
  const none = (problem: string): ConsoleEnd => ({ lines: [], cut: false, problem });
  const { console: consoles } = open.provider.offers ?? {};
  if (consoles === undefined) return none(`the driver ${open.driver.name} of ${name} shows no consoles`);
  const tag = tagOf(handles, { id, record });
  try {
    const text = await readConsole(handles.clock, consoles, tag, externalId, LOOK_MS);
    return text === null ? none("the machine has no console now") : { ...consoleTail(text), problem: null };
  } catch (error) {
    return none(messageOf(error));
  }
}
