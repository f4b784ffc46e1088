import type { Command } from "commander";
import type { Session } from "../session.ts";
import { addSliverdHosts } from "./sliverd-hosts.ts";
import { addSliverdKeys } from "./sliverd-keys.ts";

/** Machines that are divided into slivers: the keys that they believe, and how they come to. */
export function addSliverd(program: Command, session: Session): void {
  const sliverd = program
    .command("sliverd")
    .description("make machines sliver hosts, and keep the keys that they believe");
  addSliverdKeys(sliverd, session);
  addSliverdHosts(sliverd, session);
}
