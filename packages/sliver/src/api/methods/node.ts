import { computeLoans } from "../../core/index.ts";
import type { Method } from "../context.ts";
import { wrongArgument } from "../fault.ts";

const help: Method = {
  name: "Help",
  doc: "Help(): get a list of functions currently supported.",
  arity: 0,
  run: ({ dialect, docs }) => dialect.help(docs),
};

const getXids: Method = {
  name: "GetXIDs",
  doc: "GetXIDs(): return a dictionary of sliver names and their numeric user ids.",
  arity: 0,
  run: ({ manager }) =>
    Object.fromEntries(
      [...manager.state.records.values()].flatMap(({ name, kind, local }) =>
        kind === "sliver" && local.index !== undefined
          ? [[name, manager.options.backEnd.account(local.index).uid]]
          : [],
      ),
    ),
};

const getSshKeys: Method = {
  name: "GetSSHKeys",
  doc: "GetSSHKeys(): return a dictionary of account names and their ssh keys.",
  arity: 0,
  run: ({ manager }) =>
    Object.fromEntries([...manager.state.records.values()].map(({ name, keys }) => [name, keys.join("\n")])),
};

const getRecord: Method = {
  name: "GetRecord",
  doc: "GetRecord(): return the caller's own record.",
  arity: 0,
  run: ({ manager, caller, dialect }) => {
    const record = manager.state.records.get(caller.account);
    if (record === undefined || record.generation !== caller.generation)
      throw wrongArgument(`${caller.account} has no record`);
    const { minimums } = manager.options.machine.policy;
    const { effective, loanStatuses } = computeLoans(manager.state.records, minimums, manager.now);
    return dialect.record(
      record,
      effective.get(record.name) ?? record.rspec,
      loanStatuses.get(record.name) ?? [],
    );
  },
};

export const NODE_METHODS: readonly Method[] = [help, getXids, getSshKeys, getRecord];
