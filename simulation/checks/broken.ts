import type { AppliedWrite } from "@nodeyard/tree";

/** A rule that a run breaks, with the write that breaks it. */
export class Broken extends Error {
  readonly rule: string;

  constructor(rule: string, write: AppliedWrite | undefined, what: string) {
    const at =
      write === undefined
        ? ""
        : ` (zxid ${write.zxid}, ${write.client}, t=${write.at}: ${write.ops.map((op) => `${op.op} ${op.path}`).join(", ")})`;
    super(`${rule}: ${what}${at}`);
    this.name = "Broken";
    this.rule = rule;
  }
}
