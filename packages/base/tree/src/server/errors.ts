import { TreeError } from "../errors.ts";

/** The server cannot listen on the given address; the message says what to do. */
export class ListenRefused extends TreeError {
  constructor(message: string, cause?: unknown) {
    super("tree.listen_refused", message, { cause });
  }
}

/** No process has the tree of the state folder open. */
export class NotServed extends TreeError {
  constructor(folder: string, cause: unknown) {
    super("tree.not_served", `no running Nodeyard serves ${folder}; start one with: nodeyard up`, { cause });
  }
}
