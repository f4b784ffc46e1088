import { NodeyardError } from "@nodeyard/runtime";

/** A forwarder path that cannot stand in an authorized_keys line. */
export class ForwarderPathError extends NodeyardError {
  constructor(path: string) {
    super(
      "sliver.forwarder_path",
      `the forwarder ${JSON.stringify(path)} must be an absolute path of letters, digits and ._/-`,
    );
  }
}
