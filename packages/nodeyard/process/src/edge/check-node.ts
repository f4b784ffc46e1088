import { runHook } from "@nodeyard/builder";
import { idText } from "@nodeyard/driver";
import type { RunCheck } from "@nodeyard/launcher";
import { makeKnownHosts } from "./known-hosts.ts";

/**
 * Runs the program of a label's `reuse`. It learns of the node from its environment (docs/how-to/use-nodes-again.md). A program that cannot be
 * started does not pass.
 */
export const checkNode: RunCheck = async ({ command: [program = "", ...words], node }, signal) => {
  const port = typeof node.connectionPort === "number" ? node.connectionPort : null;
  const hosts = makeKnownHosts({
    interface_ip: node.interfaceIp,
    connection_port: port,
    host_keys: node.hostKeys,
  });
  try {
    const env = {
      NODEYARD_NODE: node.id,
      NODEYARD_PROVIDER: node.provider ?? "",
      NODEYARD_POOL: node.pool ?? "",
      NODEYARD_LABEL: node.type[0] ?? "",
      NODEYARD_EXTERNAL_ID: node.externalId === null ? "" : idText(node.externalId),
      NODEYARD_ADDRESS: node.interfaceIp ?? "",
      NODEYARD_PORT: port === null ? "" : String(port),
      NODEYARD_USER: node.username ?? "",
      NODEYARD_CONNECTION: node.connectionType ?? "",
      NODEYARD_KNOWN_HOSTS: hosts.file,
    };
    const { code, output } = await runHook(program, words, signal, { env, alone: true });
    if (code === 0) return undefined;
    const [last = ""] = output.split("\n").slice(-1);
    return `its check ended with status ${code}${last === "" ? "" : `: ${last.slice(-200)}`}`;
  } finally {
    hosts.remove();
  }
};
