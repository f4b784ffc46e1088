/** All states of a node. */
export const nodeStates = [
  "init",
  "building",
  "testing",
  "ready",
  "in-use",
  "used",
  "hold",
  "deleting",
  "deleted",
  "failed",
  "aborted",
] as const;
/** A state of a node. */
export type NodeState = (typeof nodeStates)[number];

/** All states of a request. */
export const requestStates = ["requested", "pending", "fulfilled", "failed"] as const;
/** A state of a request. */
export type RequestState = (typeof requestStates)[number];

/** One legal change of state; `from` null is the creation of the record, `to` null its removal. */
export interface Transition<State extends string = string> {
  readonly from: State | null;
  readonly to: State | null;
  readonly actor: string;
  readonly condition: string;
}

const worker = "launcher, deleting";

/**
 * States of a node (docs/contract/records.md, "Node"). The process that changes a state holds the node's lock, except when it creates the
 * record.
 */
export const nodeTransitions: readonly Transition<NodeState>[] = [
  {
    from: null,
    to: "init",
    actor: "launcher",
    condition: "a launch is planned; `allocated_to` is set, no lock yet",
  },
  { from: null, to: "ready", actor: "launcher", condition: "a static host's slot is registered" },
  { from: "init", to: "building", actor: "launcher", condition: "at once after taking the node's lock" },
  {
    from: "init",
    to: "deleting",
    actor: "launcher",
    condition: "its request was lost, or it was never locked",
  },
  {
    from: "building",
    to: "ready",
    actor: "launcher",
    condition: "the machine is up and answers, or has passed its check",
  },
  { from: "building", to: "failed", actor: "launcher", condition: "every attempt failed" },
  { from: "ready", to: "building", actor: "launcher", condition: "a spare is about to be suspended" },
  { from: "building", to: "hold", actor: "launcher", condition: "the spare is suspended" },
  { from: "hold", to: "building", actor: "launcher", condition: "a suspended spare is woken for a request" },
  { from: "used", to: "building", actor: "launcher", condition: "it is checked before it is used again" },
  {
    from: "building",
    to: "aborted",
    actor: "launcher",
    condition: "a transient quota error; launched again in the same pool",
  },
  {
    from: "building",
    to: "deleting",
    actor: worker,
    condition: "unlocked: its launcher died; or it did not pass its check",
  },
  { from: "ready", to: "in-use", actor: "client", condition: "the client holds the node's lock" },
  { from: "ready", to: "used", actor: "client", condition: "returned without having been used" },
  { from: "ready", to: "hold", actor: "operator", condition: "held by hand" },
  {
    from: "ready",
    to: "deleting",
    actor: "launcher, operator",
    condition:
      "older than max-ready-age, in the way of another label, no longer configured, or deleted by hand",
  },
  { from: "in-use", to: "used", actor: "client", condition: "the node is returned" },
  { from: "in-use", to: "hold", actor: "client, operator", condition: "autohold, or held by hand" },
  { from: "in-use", to: "deleting", actor: worker, condition: "unlocked: its client died" },
  { from: "hold", to: "used", actor: "client", condition: "the autohold is deleted" },
  {
    from: "hold",
    to: "deleting",
    actor: "launcher, operator",
    condition: "held longer than allowed, or deleted by hand",
  },
  { from: "used", to: "hold", actor: "operator", condition: "held by hand" },
  { from: "used", to: "deleting", actor: worker, condition: "unlocked" },
  { from: "used", to: "ready", actor: "launcher", condition: "a static host's slot is offered again" },
  { from: "failed", to: "hold", actor: "operator", condition: "held by hand" },
  { from: "failed", to: "deleting", actor: worker, condition: "unlocked" },
  { from: "aborted", to: "deleting", actor: worker, condition: "unlocked" },
  { from: "deleting", to: "deleted", actor: worker, condition: "the machine is gone" },
  { from: "deleted", to: null, actor: worker, condition: "at once" },
];

/**
 * States of a request (docs/contract/records.md, "Node request"). The actor holds the request's lock, except when it creates the record.
 */
export const requestTransitions: readonly Transition<RequestState>[] = [
  { from: null, to: "requested", actor: "requestor", condition: "created" },
  { from: "requested", to: "pending", actor: "launcher", condition: "a pool accepts it" },
  {
    from: "requested",
    to: "failed",
    actor: "launcher",
    condition: "this pool declined, and now every registered pool has",
  },
  {
    from: "pending",
    to: "requested",
    actor: "launcher",
    condition: "this pool gave it back (`declined_by` grows), or its launcher was lost (`nodes` is emptied)",
  },
  {
    from: "pending",
    to: "failed",
    actor: "launcher",
    condition: "this pool declined, and now every registered pool has",
  },
  {
    from: "pending",
    to: "fulfilled",
    actor: "launcher",
    condition: "all nodes are ready; `nodes` is filled",
  },
  { from: "requested", to: null, actor: "requestor", condition: "cancelled" },
  { from: "pending", to: null, actor: "requestor", condition: "cancelled" },
  { from: "fulfilled", to: null, actor: "requestor", condition: "its nodes are locked, or no longer wanted" },
  { from: "failed", to: null, actor: "requestor", condition: "seen" },
];

const steps = {
  node: new Set(nodeTransitions.map(({ from, to }) => `${from} ${to}`)),
  request: new Set(requestTransitions.map(({ from, to }) => `${from} ${to}`)),
};

/** Whether the contract allows this change of state. Null means "no record". Keeping the same state is always allowed. */
export function mayGo(kind: "node", from: NodeState | null, to: NodeState | null): boolean;
export function mayGo(kind: "request", from: RequestState | null, to: RequestState | null): boolean;
export function mayGo(kind: "node" | "request", from: string | null, to: string | null): boolean {
  return from === to || steps[kind].has(`${from} ${to}`);
}
