import type { NodeAccess } from "@nodeyard/client";
import { backoff, type Clock, type Random, sleep } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { Ssh } from "./edge/ssh.ts";
import { OnNodeError } from "./errors.ts";

/** What runs on a node. */
export interface Program {
  /** Lines of `sh`, run in a folder of their own in the home of the node's user. */
  readonly script: string;
  /** Variables of its environment; they may be secret. */
  readonly env: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface ProgramEnd {
  /** Its exit code; undefined: it is not known, because the node was started anew meanwhile. */
  readonly code: number | undefined;
  /** The end of what it printed, when it failed. */
  readonly output: string;
}

/** Programs on nodes, each with a name of lower case letters, digits and dashes, once for each name. */
export interface NodeShell {
  /**
   * Starts the program of this name unless it was started before, and resolves when it has ended; also after a lost connection, and for
   * the next process that asks. `program` is called only when it has to be started. Rejects with OnNodeError when the node cannot run it, with
   * what `program` throws, and with the signal's reason.
   */
  run(
    node: NodeAccess,
    name: string,
    program: () => Promise<Program>,
    signal: AbortSignal,
  ): Promise<ProgramEnd>;
  /** Ends the program of this name, if there is one, and removes what it left in its folder. Rejects with OnNodeError. */
  stop(node: NodeAccess, name: string, signal: AbortSignal): Promise<void>;
}

/** The last line of what is sent: a connection that breaks before it starts nothing. */
const END = "# end";
/**
 * The folder is made by one session only. A job waits for these lines, and each program that they start costs it milliseconds, so the
 * shell itself does what it can. The lock is held until the program has ended, so that others wait for it without looking again and
 * again, and it exists only while it is held or after.
 */
const RUN = `
mask=$(umask)
umask 077
for tool in flock setsid pkill; do
  command -v $tool >/dev/null || { echo "$tool is missing (util-linux, procps)" >&2; exit 78; }
done
d=$HOME/.nodeyard/$1
[ -d "$HOME/.nodeyard" ] || mkdir -p "$HOME/.nodeyard" || exit 78
if mkdir "$d" 2>/dev/null; then
  echo new
  job=$(cat)
  [ "\${job%"${END}"}" != "$job" ] || { rm -rf "$d"; exit 75; }
  printf '%s\n' "$job" >"$d/job"
  unset job
  read -r boot </proc/sys/kernel/random/boot_id
  echo "$boot" >"$d/boot"
  exec 9>"$d/lock.new"
  flock 9
  cd "$d"
  mask=$mask setsid sh -c 'echo $$ >pid; (umask "$mask"; unset mask; exec 9>&-; exec sh ./job) >log 2>&1 </dev/null; echo $? >exit' \
    >/dev/null 2>&1 </dev/null &
  exec 9>&-
  mv "$d/lock.new" "$d/lock"
else
  echo known
fi
n=0
while [ -d "$d" ] && [ ! -e "$d/lock" ]; do
  n=$((n + 1))
  # The session that made it is gone, and the node was started anew.
  [ $n -lt 180 ] || rm -rf "$d"
  sleep 1
done
[ -d "$d" ] || exit 75
flock "$d/lock" true
[ -e "$d/exit" ] || exit 76
echo "exit $(cat "$d/exit")"
[ "$(cat "$d/exit")" = 0 ] || tail -c 2000 "$d/log" >&2
exit 0
`;
/** All of the program's sessions, which outlive their leaders, unless the node was started anew since. */
const STOP = `
d=$HOME/.nodeyard/$1
if [ -s "$d/pid" ] && [ "$(cat "$d/boot")" = "$(cat /proc/sys/kernel/random/boot_id)" ]; then
  s=$(paste -s -d , "$d/pid")
  pkill -TERM -s "$s" && sleep 1 && pkill -KILL -s "$s"
fi
rm -rf "$d"
`;

const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [1_000, 30_000];

/** Programs on nodes by ssh. */
export function nodeShell(
  ssh: Ssh,
  { clock, random, log }: { readonly clock: Clock; readonly random: Random; readonly log: Log },
): NodeShell {
  return {
    async run(node, name, program, signal) {
      // What was made for a session that broke is good for the next: the node has not had it.
      let made: Promise<string> | undefined;
      const text = () => {
        made ??= program().then(textOf);
        made.catch(() => {
          made = undefined;
        });
        return made;
      };
      for (let attempt = 0; ; attempt++) {
        let code: number | undefined;
        const onLine = (line: string) => {
          if (line.startsWith("exit ")) code = Number(line.slice(5));
          if (line === "new") return text();
          return line === "known" ? Promise.resolve("") : undefined;
        };
        const ended = await ssh(node, { script: RUN, words: [name], onLine, signal });
        if (code !== undefined) return { code, output: ended.err };
        if (ended.code === 76) return { code: undefined, output: "" };
        if (ended.code !== 255 && ended.code !== 75)
          throw new OnNodeError(
            `node ${node.id} cannot run ${name}: ${ended.err || `exit code ${ended.code}`}`,
          );
        const facts = { node: node.id, program: name, error: ended.err };
        if (attempt < 2) log.warn(facts, "cannot connect to a node by ssh, or lost it; will retry");
        // Until the lease ends or the caller gives up: the program may be at work.
        await sleep(clock, backoff(random, attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS), signal);
      }
    },
    async stop(node, name, signal) {
      const { code, err } = await ssh(node, { script: STOP, words: [name], signal });
      if (code !== 0)
        throw new OnNodeError(`cannot stop ${name} on node ${node.id}: ${err || `exit code ${code}`}`);
    },
  };
}

/** The file that the node's shell runs. It removes itself first, because it may have secrets. */
function textOf({ script, env }: Program): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const lines = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `${["rm -f ./job", ...lines, script, END].join("\n")}\n`;
}
