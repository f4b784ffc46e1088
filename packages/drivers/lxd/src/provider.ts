import {
  type Cloud,
  cloudProvider,
  type DriverContext,
  DriverError,
  type LabelConfig,
  type OpenFile,
  type Provider,
} from "@nodeyard/driver";
import { z } from "zod";
import { limitsOf, PROJECT, RESOURCES } from "./amounts.ts";
import { LxdClient, type LxdClientOptions, LxdError } from "./client.ts";
import type { LxdLabelOwn, LxdProviderConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { imagePart, imageStore } from "./images.ts";
import { amountsOfInstance, hasEnded, type Instance, SERVER, type Server } from "./instances.ts";
import { needOf, sourceOf } from "./labels.ts";
import { describe, makeCall, nodeMachines } from "./machines.ts";

/** Characters of a console that are kept: what a machine said last. */
const CONSOLE_LENGTH = 64 * 1024;

const MEMBER = z.object({ server_name: z.string(), status: z.string() });

/** What a provider is made of, beside the handles of the process. */
export interface ProviderParts extends Pick<LxdClientOptions, "route" | "connect"> {
  readonly openFile: OpenFile;
  /** PEM of a remote's certificate. Throws LxdConfigError. */
  readonly pem: (path: string) => string;
}

/** Opens the machines of a project on a server or cluster. */
export function openLxd(
  config: LxdProviderConfig,
  { clock, random, observe }: Pick<DriverContext, "clock" | "random" | "observe">,
  { route, connect, openFile, pem }: ProviderParts,
): Promise<Provider> {
  const { own, pools } = config;
  const labels = pools.flatMap((pool) => [...pool.labels.values()] as LabelConfig<LxdLabelOwn>[]);
  return cloudProvider<Instance>(config, mapError, (closed): Cloud<Instance> => {
    const { server: address, project } = own;
    const client = new LxdClient({
      ...{ clock, random, route, connect, server: address, project },
      ...(observe && { observe }),
    });
    let server: Server | undefined;
    // `check` has read it before anything else is called.
    const known = () => server as Server;
    /** The members of the cluster that are online; null: there is no cluster. */
    const members = async (signal: AbortSignal) => {
      if (!known().server_clustered) return null;
      const all = await client.get(z.array(MEMBER), "/cluster/members", signal, { recursion: "1" });
      return all.flatMap(({ server_name, status }) => (status === "Online" ? [server_name] : [])).sort();
    };
    return {
      machines: nodeMachines(client, config.launchTimeoutMs, closed),
      // A remote's image is downloaded by the call.
      makeMs: config.launchTimeoutMs,
      make: async (order) => makeCall(client, order, sourceOf(order, pem), known()),
      describe: async (_, machine) => describe(machine, known()),
      amounts: async () => amountsOfInstance,
      isEnding: hasEnded,
      need: (label, signal) => needOf(client, label, signal),
      async quota(signal) {
        const targets = (await members(signal))?.map((target) => ({ target })) ?? [{}];
        const [{ config: limits }, ...hosts] = await Promise.all([
          client.get(PROJECT, `/projects/${project}`, signal),
          ...targets.map((target) => client.get(RESOURCES, "/resources", signal, target)),
        ]);
        return limitsOf(limits, hosts);
      },
      parts: { image: imagePart(client) },
      console: (name, signal) => consoleOf(client, name, signal),
      offers: {
        zones: { list: async (_pool, signal) => (await members(signal)) ?? [known().server_name] },
        images: imageStore({
          ...{ client, openFile, uploadMs: own.imageUploadTimeoutMs },
          architecture: () => known().architectures[0]!,
          isForVms: labels.some(
            ({ image, own: { type } }) => image?.kind === "diskimage" && type !== "container",
          ),
        }),
      },
      place: () => ({ server: known().certificate_fingerprint, project }),
      async check(signal) {
        const { auth, environment } = await client.get(SERVER, "", signal);
        if (auth !== "trusted" || environment === undefined)
          throw new DriverError(
            "access",
            `${config.name}: ${address} does not trust ${own.clientCertificate ?? "this user"}: lxc config trust add FILE`,
          );
        server = environment;
      },
      close: () => client.close(),
    };
  });
}

/** The end of what a machine wrote to its console; null: it has none. The server keeps none of virtual machines. */
async function consoleOf(client: LxdClient, name: string, signal: AbortSignal): Promise<string | null> {
  try {
    return (await client.text(`/instances/${name}/console`, signal)).slice(-CONSOLE_LENGTH);
  } catch (error) {
    if (!(error instanceof LxdError)) throw error;
    // The file of a container that has written nothing yet.
    return /no such file/.test(error.said) ? "" : null;
  }
}
