import type { Lease } from "@nodeyard/model";
import { brokenRule } from "@nodeyard/scheduler";
import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Replay } from "./replay.ts";
import type { Rule } from "./rule.ts";

const LEASE = /^\/nodeyard\/leases\/[^/]+$/;

/**
 * Promise of mixed sets: a lease has all of its nodes or none, in the order of its labels, those of a label from one pool, and they agree in what
 * its rules name. What it holds before is held by it alone.
 */
export class SetsAreWhole implements Rule {
  onWrite(write: AppliedWrite, replay: Replay): void {
    for (const op of write.ops) {
      if (op.op !== "set" || !LEASE.test(op.path)) continue;
      const lease = JSON.parse(Buffer.from(op.data).toString()) as Lease;
      const { state, labels, nodes, set } = lease;
      if (set === null || set === undefined) continue;
      const isGranted = state === "granted";
      if (state === "gathering" && nodes.length > 0)
        throw new Broken("a set is delivered whole", write, `${op.path} has ${nodes} of ${labels}`);
      if (isGranted && nodes.length !== labels.length)
        throw new Broken(
          "a set is delivered whole",
          write,
          `${op.path}: ${nodes.length} of ${labels.length}`,
        );
      if (!isGranted && state !== "gathering") continue;
      const held = set.parts.flatMap((part) => part.nodes.map((id) => ({ label: part.label, id })));
      const all = isGranted ? labels.map((label, index) => ({ label, id: nodes[index]! })) : held;
      this.#check(op.path, all, lease, write, replay);
    }
  }

  #check(
    path: string,
    all: readonly { readonly label: string; readonly id: string }[],
    { state, set }: Lease,
    write: AppliedWrite,
    { nodes }: Replay,
  ): void {
    const pools = new Map<string, string>();
    for (const { label, id } of all) {
      const node = nodes.get(id)?.data;
      // What is held may be taken away by hand before the set is whole, and is noticed then.
      if (node === undefined && state === "gathering") continue;
      const pool = `${node?.provider}/${node?.pool}`;
      const other = pools.get(label) ?? pool;
      if (!(node?.type as string[] | undefined)?.includes(label) || other !== pool)
        throw new Broken("a part of a set comes from one pool", write, `${path}: ${label}: ${id} of ${pool}`);
      pools.set(label, pool);
    }
    const records = all.flatMap(({ label, id }) => {
      const data = nodes.get(id)?.data;
      return data === undefined ? [] : [{ label, record: data as never }];
    });
    const broken = set && brokenRule(set, records);
    if (broken) throw new Broken("the nodes of a set agree", write, `${path}: ${broken.fact}`);
  }
}
