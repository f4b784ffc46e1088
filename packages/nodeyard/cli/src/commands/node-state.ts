import { nodeColumns, plain } from "@nodeyard/operations/listing";
import { inTime } from "@nodeyard/runtime";
import { type Command, Option } from "commander";
import { parseDuration, parseNodeId } from "../arguments.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { TimedOut } from "../errors.ts";
import { followNode } from "../follow.ts";
import { printRows } from "../listing.ts";
import { patiently } from "../patience.ts";
import { personOf, type Session } from "../session.ts";

/** Default of `delete --now`, milliseconds. A cloud that needs longer to delete a machine has a problem. */
const DELETED_MS = 600_000;

interface JsonOption {
  readonly json?: boolean;
}

interface DeleteOptions extends JsonOption {
  readonly now?: boolean;
  readonly forget?: boolean;
  /** Milliseconds. */
  readonly timeout: number;
}

interface HoldOptions extends JsonOption {
  readonly comment?: string;
  /** Milliseconds; absent: until max-hold-age. */
  readonly for?: number;
}

/** `nodeyard delete`: marks the record, and with `--now` also waits. The machine is deleted by a launcher in both cases. */
export function defineDelete(command: Command, session: Session): void {
  command
    .argument("<node>", 'id of a node, as "nodeyard list" shows it', parseNodeId)
    .option(
      "--now",
      "return only when its machine and its record are gone; retries at once what could not be deleted in many tries",
    )
    .addOption(
      new Option("--timeout <duration>", "with --now: stop waiting after this time, exit code 124")
        .argParser(parseDuration)
        .default(DELETED_MS, "10m"),
    )
    .addOption(
      new Option(
        "--forget",
        "remove only the record of a node whose provider no launcher serves, or that could not be deleted in many tries; its machine may run on",
      ).conflicts("now"),
    )
    .option("--json", "an array on stdout with the node, empty when it is gone already")
    .action((id: string, options: DeleteOptions) =>
      withBackend(session, async (backend) => {
        if (options.forget === true) await forget(session, backend, id);
        else if (options.now === true) await deleteNow(session, backend, id, options.timeout);
        else await backend.call("delete_node", { path: { id } });
        await printNode(session, backend, id, options);
      }),
    );
}

/** Says what is nobody's from now on. */
async function forget({ io }: Session, backend: Backend, id: string): Promise<void> {
  const { provider, server_id: server, place } = await backend.call("forget_node", { path: { id } });
  const machine = `Machine ${server ?? "(id unknown)"} of provider ${provider ?? "(unknown)"}, in ${place},`;
  io.err(
    `nodeyard: WARNING: the record of node ${id} is gone. ${plain(machine)} may run on and cost: delete it there\n`,
  );
}

/** Marks the node and waits until its record is gone. Rejects with TimedOut. */
async function deleteNow(
  { machine }: Session,
  backend: Backend,
  id: string,
  timeoutMs: number,
): Promise<void> {
  await backend.call("delete_node", { path: { id }, query: { now: "true" } });
  const following = followNode(backend, id);
  const late = () =>
    new TimedOut(
      `node ${id} is not gone after ${timeoutMs / 1_000} s (--timeout); "nodeyard explain ${id}" says why, and its deletion continues`,
    );
  try {
    await inTime(machine.clock, timeoutMs, following.ended, late);
  } finally {
    // Whether the connection ends well does not matter any more: the result is known.
    await patiently(machine.clock, following.close()).catch(() => {});
  }
}

/** `nodeyard hold`: allowed in the states that the record's table of states allows; else the error names the state. */
export function defineHold(command: Command, session: Session): void {
  command
    .argument("<node>", 'id of a node, as "nodeyard list" shows it', parseNodeId)
    .option("--comment <text>", "why, for the next person")
    .option(
      "--for <duration>",
      "for at most this long; default: max-hold-age of the configuration",
      parseDuration,
    )
    .option("--json", "an array on stdout with the node")
    .action((id: string, options: HoldOptions) =>
      withBackend(session, async (backend) => {
        const comment = options.comment ?? `held by ${personOf(session)}`;
        // Without `for_seconds` the node is held until max-hold-age.
        const limit = options.for === undefined ? {} : { for_seconds: Math.ceil(options.for / 1_000) };
        await backend.call("hold_node", { path: { id }, body: { why: comment, ...limit } });
        await printNode(session, backend, id, options);
      }),
    );
}

/** The node's row of `list`; an empty table when it is gone already. */
async function printNode({ io }: Session, backend: Backend, id: string, { json }: JsonOption): Promise<void> {
  const rows = await backend.find("get_nodes", { path: { id } });
  printRows(io, rows, nodeColumns, { json: json === true, now: backend.now() });
}
