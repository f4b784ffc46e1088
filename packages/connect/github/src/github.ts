import {
  type Connector,
  connectorKind,
  RunnerPool,
  RunnerPools,
  readKey,
  readSecret,
} from "@nodeyard/connect";
import { settledWithin } from "@nodeyard/runtime";
import { type Options, options } from "./options.ts";
import { ScaleSet } from "./scale-set.ts";
import { ScaleSetService } from "./service.ts";
import { type Credentials, SignIn } from "./sign-in.ts";

/** A runner scale set of GitHub Actions, each of whose jobs has a runner and a node of its own. */
export const github = connectorKind("github", options, async (given, parts): Promise<Connector> => {
  const service = new ScaleSetService(parts.clock, new SignIn(parts.clock, given.url, credentialsOf(given)));
  const set = new ScaleSet(service, given, parts);
  const lease = { labels: [given.label], for_seconds: given.time, priority: given.priority };
  const wish = { system: "github", key: given["scale-set"], lease, idleMs: given.idle * 1_000 };
  const source = runnersOf(service, set, given);
  const pool = new RunnerPool(source, wish, parts);
  const all = new RunnerPools([pool], "github", source.remove, parts);
  const stop = new AbortController();
  const following = set.follow(pool, all, stop.signal);
  return {
    async close(graceMs) {
      stop.abort(new Error("the connector is stopped"));
      await settledWithin(parts.clock, graceMs, Promise.all([following, all.close(graceMs)]));
    },
  };
});

function credentialsOf({ "token-file": token, app }: Options): Credentials {
  if (app === undefined) return { token: readSecret(token!) };
  return { clientId: app["client-id"], installation: app["installation-id"], key: readKey(app["key-file"]) };
}

function runnersOf(service: ScaleSetService, set: ScaleSet, { start }: Options) {
  const remove = (name: string) => service.remove(name);
  return {
    remove,
    async begin(name: string) {
      const id = await set.id();
      let config = await service.register(id, name);
      if (config === undefined) {
        // Left from a start whose connection broke before the node had it.
        if ((await remove(name)) === "busy") throw new Error(`a runner ${name} has a job elsewhere`);
        config = await service.register(id, name);
      }
      if (config === undefined) throw new Error(`GitHub keeps a runner ${name} that it does not remove`);
      return { script: start, env: { ACTIONS_RUNNER_INPUT_JITCONFIG: config } };
    },
  };
}
