import type { ChildProcess } from "node:child_process";
import {
  type Clock,
  type CreateOrder,
  DriverError,
  type Machine,
  type Provider,
  provide,
  type Resources,
  type Step,
  type StepContext,
  sleep,
  type Tag,
} from "@nodeyard/driver";
import type { LabLabelOwn, LabProviderConfig } from "./config.ts";
import type { BoardState, Boards } from "./edge/boards.ts";
import { mapError } from "./errors.ts";
import { boardName, tagOf } from "./name.ts";

const STEP_MS = 10_000;
const POLL_MS = 20;
const ONE: Resources = { instances: 1 };

type Running = Extract<BoardState, { readonly state: "running" }>;

/** Dependencies of the steps. */
interface Lab {
  readonly boards: Boards;
  readonly config: LabProviderConfig;
  readonly clock: Clock;
}

/** One folder of boards. The provider keeps no state in memory: everything is in the folder. */
export function labProvider(lab: Lab): Provider {
  const { boards, config } = lab;
  return provide(
    config.name,
    {
      create: (order, context) => create(lab, order, context),
      remove: (tag, context) => remove(lab, tag, context),
      async find(tag) {
        const name = boardName(tag);
        return (await boards.has(name)) ? name : undefined;
      },
      async list() {
        const names = await boards.names();
        return names.map((name) => ({ type: "instance", id: name, tag: tagOf(name), resources: ONE }));
      },
      async removeResource({ tag }, signal) {
        if (tag === null) return;
        await stop(lab, boardName(tag), signal);
        await boards.discard(boardName(tag));
      },
      async quota() {
        const { maxBoards } = config.own;
        return Number.isFinite(maxBoards) ? { instances: maxBoards } : {};
      },
      need: async () => ONE,
    },
    mapError,
  );
}

async function* create(
  lab: Lab,
  order: CreateOrder,
  { signal, externalId }: StepContext,
): AsyncGenerator<Step, Machine, void> {
  const name = boardName(order.tag);
  const saved = externalId === name ? {} : { save: { externalId: name } };
  yield { step: "folder", deadlineMs: STEP_MS, ...saved };
  await claim(lab, name);

  yield { step: "start", deadlineMs: STEP_MS };
  const child = await start(lab, name, order);

  yield { step: "boot", deadlineMs: lab.config.launchTimeoutMs };
  return describe(name, order, await booted(lab, name, child, signal));
}

async function* remove(lab: Lab, tag: Tag, { signal }: StepContext): AsyncGenerator<Step, void, void> {
  // The tag is enough: an id from an older version, or of another node, is ignored.
  const name = boardName(tag);
  yield { step: "stop", deadlineMs: STEP_MS };
  await stop(lab, name, signal);

  yield { step: "discard", deadlineMs: STEP_MS };
  await lab.boards.discard(name);
}

/** Counted after the board was made: two concurrent ones may both be refused, but there is never one too many. */
async function claim({ boards, config }: Lab, name: string): Promise<void> {
  const { maxBoards, folder } = config.own;
  if (!(await boards.claim(name))) return;
  if ((await boards.names()).length <= maxBoards) return;
  await boards.discard(name);
  throw new DriverError("quota", `${config.name}: ${folder} has ${maxBoards} boards (max-boards)`);
}

/** The started process; undefined if the board ran already. */
async function start(
  { boards, config }: Lab,
  name: string,
  { hostname, label }: CreateOrder,
): Promise<ChildProcess | undefined> {
  const { state } = await boards.state(name);
  switch (state) {
    case "running":
      return undefined;
    case "idle":
      return boards.start(name, { hostname, greeting: (label.own as LabLabelOwn).greeting });
    case "absent":
      throw new DriverError("not-found", `${config.name}: the folder of ${hostname} was removed`);
    default:
      return state satisfies never;
  }
}

async function booted(
  { boards, clock }: Lab,
  name: string,
  child: ChildProcess | undefined,
  signal: AbortSignal,
): Promise<Running> {
  for (;;) {
    // Read first: a process that ends may have found another one that runs.
    const ended = child !== undefined && (child.exitCode !== null || child.signalCode !== null);
    const board = await boards.state(name);
    if (board.state === "running") return board;
    if (ended) throw new DriverError("transient", `board ${name} ended: ${await boards.lastLine(name)}`);
    await sleep(clock, POLL_MS, signal);
  }
}

async function stop({ boards, clock }: Lab, name: string, signal: AbortSignal): Promise<void> {
  await boards.stop(name);
  while ((await boards.state(name)).state === "running") await sleep(clock, POLL_MS, signal);
}

function describe(name: string, { hostname }: CreateOrder, { port }: Running): Machine {
  return {
    externalId: name,
    interfaceIp: "127.0.0.1",
    publicIpv4: "127.0.0.1",
    privateIpv4: "127.0.0.1",
    hostname,
    resources: ONE,
    connection: { port },
  };
}
