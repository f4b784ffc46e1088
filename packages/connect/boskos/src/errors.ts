import { NodeyardError } from "@nodeyard/runtime";

/** A call is answered with this status and this text, which callers of Boskos know. */
export class BoskosRefusal extends NodeyardError {
  readonly status: number;

  constructor(status: number, text: string) {
    super("boskos.refused", text);
    this.status = status;
  }
}

/** No resource of this type is free, or none has this name. */
export const notFound = (name: string) =>
  new BoskosRefusal(404, `no available resource ${name}, try again later.`);

/** Clients tell this from `notFound` by its text alone. */
export const noType = (type: string) =>
  new BoskosRefusal(404, `resource type ${JSON.stringify(type)} does not exist`);

/** Another owner has it. */
export const notOwner = (caller: string, owner: string) =>
  new BoskosRefusal(401, `owner mismatch request by ${caller}, currently owned by ${owner}`);

/** It is in another state than its owner thinks. */
export const notInState = (expected: string, current: string) =>
  new BoskosRefusal(409, `state mismatch - expected ${expected}, current ${current}`);
