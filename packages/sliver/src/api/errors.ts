import { NodeyardError } from "@nodeyard/runtime";

/** The API was configured to listen on an address that other machines can reach. */
export class NotLoopbackError extends NodeyardError {
  constructor(host: string) {
    super("sliver.not_loopback", `the API listens on loopback only, not on ${host}; reach it over SSH`);
  }
}
