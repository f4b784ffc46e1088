import type { NodeAccess } from "@nodeyard/client";
import type { openSsh } from "@nodeyard/connect";
import { z } from "zod";
import { CommandError, UsageError } from "../errors.ts";
import { quote } from "../ssh-words.ts";

type Ssh = ReturnType<typeof openSsh>;

const words = z
  .array(z.string())
  .nullish()
  .transform((list) => list ?? []);
const schema = z.array(
  z.object({
    name: z.string().min(1),
    alias: z.string().nullish(),
    entrypoint: words,
    command: words,
    variables: z.record(z.string(), z.string()).nullish(),
  }),
);

/** One of a job's `services:`, a container beside it. */
export type Service = z.output<typeof schema>[number];

/** `CI_JOB_SERVICES` (docs.gitlab.com/runner/executors/custom). Throws UsageError. */
export function servicesOf(text: string | undefined): readonly Service[] {
  if (text === undefined) return [];
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new UsageError(`CUSTOM_ENV_CI_JOB_SERVICES is not the list that a GitLab runner writes: ${text}`, {
      cause,
    });
  }
}

/** Docker may be installed where its daemon does not run. */
const FIND = `
for tool in docker podman; do $tool info >/dev/null 2>&1 && break; tool=; done
root=; [ -w /etc/hosts ] || root="sudo -n"
`;

/**
 * Starts containers on the node, in its own network: the job reaches them at `localhost` and, where the node's user may write /etc/hosts, by
 * their names. Rejects with CommandError.
 */
export async function startServices(
  ssh: Ssh,
  node: NodeAccess,
  job: string,
  services: readonly Service[],
  signal: AbortSignal,
): Promise<void> {
  if (services.length === 0) return;
  const starts = services.map(({ name, entrypoint: [program, ...before], command, variables }) =>
    [
      `$tool run --detach --stop-timeout 0 --network host --label nodeyard=${job}`,
      ...(program === undefined ? [] : ["--entrypoint", quote(program)]),
      ...Object.entries(variables ?? {}).flatMap((pair) => ["--env", quote(pair.join("="))]),
      ...[name, ...before, ...command].map(quote),
      ">/dev/null",
    ].join(" "),
  );
  const names = services.flatMap(hostNames).map(quote).join(" ");
  const script = `${FIND}
[ -n "$tool" ] || { echo "services need docker or podman on the node" >&2; exit 1; }
set -e
${starts.join("\n")}
echo 127.0.0.1 ${names} "# $1" | $root tee -a /etc/hosts >/dev/null || echo "services have no names here, only localhost" >&2
`;
  const { code, err } = await ssh(node, { script, words: [job], signal });
  if (code !== 0)
    throw new CommandError(
      "cli.no_services",
      `cannot start the services on node ${node.id}: ${err || `exit code ${code}`}`,
    );
}

/** Ends the containers of a job. Rejects with CommandError. */
export async function endServices(
  ssh: Ssh,
  node: NodeAccess,
  job: string,
  signal: AbortSignal,
): Promise<void> {
  const script = `${FIND}
[ -n "$tool" ] || exit 0
containers=$($tool ps --all --quiet --filter label=nodeyard=$1)
[ -z "$containers" ] || $tool rm --force --volumes $containers >/dev/null || exit 1
hosts=$(grep -v "# $1$" /etc/hosts)
[ "$hosts" = "$(cat /etc/hosts)" ] || echo "$hosts" | $root tee /etc/hosts >/dev/null
`;
  const { code, err } = await ssh(node, { script, words: [job], signal });
  if (code !== 0)
    throw new CommandError(
      "cli.no_services",
      `cannot end the services on node ${node.id}: ${err || `exit code ${code}`}`,
    );
}

/** As GitLab names them (docs.gitlab.com/ci/services, "Accessing the services"). */
function hostNames({ name, alias }: Service): readonly string[] {
  if (alias) return alias.split(/[\s,]+/);
  const image = name
    .replace(/@.*/, "")
    .replace(/:[^:/]*$/, "")
    .replace(/:\d+(?=\/)/, "");
  return [...new Set([image.replaceAll("/", "__"), image.replaceAll("/", "-")])];
}
