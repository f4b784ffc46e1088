import { type SliverRecord, type State, withLocal } from "../../core/index.ts";
import { type Change, converged } from "../../manager/index.ts";
import type { Context, TargetMethod } from "../context.ts";
import { FAILED_CALL, Fault } from "../fault.ts";

/** Milliseconds that a call waits for the machine to follow; what was asked for goes on afterwards. */
const PATIENCE = 110_000;

const create: TargetMethod = {
  name: "Create",
  doc: "Create(sliver_name): create a delegated sliver.",
  arity: 1,
  target: true,
  run: (context, record) => setDesired(context, record, true),
};

const destroy: TargetMethod = {
  name: "Destroy",
  doc: "Destroy(sliver_name): destroy a delegated sliver; its record stays.",
  arity: 1,
  target: true,
  run: (context, record) => setDesired(context, record, false),
};

const start: TargetMethod = {
  name: "Start",
  doc: "Start(sliver_name): start the sliver and run its start scripts.",
  arity: 1,
  target: true,
  run: async (context, record) => {
    const exists = context.manager.observed.some(
      ({ incarnation }) => incarnation === record.local.incarnation,
    );
    if (!exists && record.instantiation !== "plc-instantiated" && record.local.desired !== true) {
      if (!context.dialect.strict) return 1;
      throw new Fault(FAILED_CALL, `${record.name} has not been created`);
    }
    return follow(
      context,
      await change(context, record, (state) => withLocal(state, record.name, { stopped: false })),
    );
  },
};

const stop: TargetMethod = {
  name: "Stop",
  doc: "Stop(sliver_name): kill all processes of the sliver.",
  arity: 1,
  target: true,
  run: async (context, record) =>
    follow(
      context,
      await change(context, record, (state) => withLocal(state, record.name, { stopped: true })),
    ),
};

const reCreate: TargetMethod = {
  name: "ReCreate",
  doc: "ReCreate(sliver_name): stop, destroy, create and start the sliver.",
  arity: 1,
  target: true,
  run: async (context, record) =>
    follow(context, await change(context, record, (state) => renewed(state, record.name, { desired: true }))),
};

export const SLIVER_METHODS: readonly TargetMethod[] = [create, destroy, start, stop, reCreate];

async function setDesired(context: Context, record: SliverRecord, desired: boolean): Promise<unknown> {
  if (record.instantiation !== "delegated") {
    if (!context.dialect.strict) return 1;
    const verb = desired ? "create" : "destroy";
    throw new Fault(FAILED_CALL, `Only PLC can ${verb} non delegated slivers`);
  }
  return follow(context, await change(context, record, (state) => desiredState(state, record.name, desired)));
}

/** A delegated sliver as Create or Destroy wants it. What was destroyed comes back as another incarnation. */
export function desiredState(state: State, name: string, desired: boolean): State {
  const local = state.records.get(name)?.local;
  if (local === undefined || local.desired === desired) return state;
  const again = desired && local.desired === false;
  return again ? renewed(state, name, { desired }) : withLocal(state, name, { desired });
}

/** Another incarnation, whose place is new too: nothing of the old one is waited for or found. */
function renewed(state: State, name: string, change: { readonly desired: boolean }): State {
  const record = state.records.get(name);
  if (record === undefined) return state;
  const { loans } = record.local;
  const records = new Map(state.records);
  records.set(name, { ...record, local: { ...change, loans, incarnation: state.nextIncarnation } });
  return { ...state, records, nextIncarnation: state.nextIncarnation + 1 };
}

/** The record may have gone or been given to another while the call waited its turn. */
async function change(
  { manager }: Context,
  { name, generation }: SliverRecord,
  next: (state: State) => State,
): Promise<number | undefined> {
  return manager.change((state): Change<number | undefined> => {
    const now = state.records.get(name);
    if (now?.generation !== generation) throw new Fault(FAILED_CALL, `${name} was just removed`);
    const changed = next(state);
    return { state: changed, result: changed.records.get(name)?.local.incarnation };
  });
}

async function follow(context: Context, incarnation: number | undefined): Promise<unknown> {
  if (context.dialect.waits && incarnation !== undefined)
    await converged(context.manager, incarnation, PATIENCE);
  return 1;
}
