import { NodeyardError } from "@nodeyard/runtime";

/** The API was told to listen where other machines reach it. */
export class NotLoopbackError extends NodeyardError {
  constructor(host: string) {
    super("sliver.not_loopback", `the API listens on loopback only, not on ${host}; reach it over SSH`);
  }
}
