import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../testing/patience.ts";
import { requireTools } from "../../../../testing/skipped.ts";
import { COMPLETIONS, type Described, describeProgram, main, type Shell } from "../src/index.ts";

const LIMIT_MS = patient(60_000);
let folder: string;
let program: Described;
beforeAll(async () => {
  program = await describeProgram(systemMachine());
  folder = mkdtempSync(join(tmpdir(), "nodeyard-completion-"));
  mkdirSync(join(folder, "split"));
  writeFileSync(join(folder, "nodepool.yaml"), "");
  writeFileSync(join(folder, "inner.zsh"), INNER_ZSH);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What bash finds: it cuts words at = as well. */
const BASH = `
source "$1"
read -ra COMP_WORDS <<<"\${2//=/ = }"
[[ $2 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
compopt() { :; }
_nodeyard
printf '%s\\n' "\${COMPREPLY[@]}"
`;

/** zsh completes only on a terminal: one of its own, which prints what is offered in place of a list. */
const ZSH = `
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "source inner.zsh \${(q)1}"
zpty -r -m inner begun '*begin*' || exit 1
zpty -w -n inner "$2"$'\\t'
zpty -r -m inner said '*all-of-them*' || exit 1
print -rl -- \${(M)\${(f)said}:#*offers:*}
`;
const INNER_ZSH = `
PS1= PS2=
autoload -U compinit; compinit -C -d ./zcompdump
source $1
compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
  local -a found
  builtin compadd -A found "$@"
  print -rl -- offers:$^found
  builtin compadd "$@"
}
ended() { print -r -- all-of-them; exit }
zstyle ':completion:*' insert-tab false
bindkey '^I' complete-word
comppostfuncs=(ended)
# What is typed before the editor reads keys may be lost.
zle-line-init() { print -r -- begin }
zle -N zle-line-init
`;

const FOUND: Readonly<Record<Shell, (script: string, line: string) => readonly string[]>> = {
  bash: (script, line) => lines("bash", ["--norc", "-c", BASH, "bash", script, line]),
  zsh: (script, line) => lines("zsh", ["-f", "-c", ZSH, "zsh", script, line]),
  fish: (script, line) =>
    lines("fish", ["--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line]),
};

/** Without descriptions, and what a shell adds at the end of a word. */
function lines(shell: Shell, words: readonly string[]): readonly string[] {
  const env = { ...process.env, HOME: folder, TERM: "dumb" };
  const said = execFileSync(shell, words, { cwd: folder, env, encoding: "utf8", timeout: LIMIT_MS });
  const found = said.split(/\r?\n/).flatMap((line) => {
    const word = (/offers:(.*)/.exec(line)?.[1] ?? line)
      .split("\t")[0]!
      .trim()
      .replace(/^--[a-z-]+=(?=.)|[=/]$/g, "");
    return word === "" ? [] : [word];
  });
  return [...new Set(found)];
}

const CASES: readonly (readonly [line: string, found: readonly string[]])[] = [
  ["nodeyard li", ["list"]],
  ["nodeyard --state list lis", ["list"]],
  ["nodeyard -c nodepool.yaml request-l", ["request-list"]],
  ["nodeyard request --wa", ["--wait"]],
  ["nodeyard list --state rea", ["ready"]],
  ["nodeyard list --state=rea", ["ready"]],
  ["nodeyard --log-format jo", ["journald"]],
  ["nodeyard request --log-format js", ["json"]],
  ["nodeyard sliverd keys ro", ["rotate"]],
  ["nodeyard sliverd keys rotate --ov", ["--overlap"]],
  ["nodeyard completion f", ["fish"]],
  ["nodeyard -c nodep", ["nodepool.yaml"]],
  ["nodeyard backup nodep", ["nodepool.yaml"]],
  ["nodeyard config-validate --split ", ["split"]],
  ["nodeyard --state sp", ["split"]],
  ["nodeyard request --timeout ", []],
  ["nodeyard request lis", []],
];

test("nodeyard completion prints the script, and names the shells when it has none", async () => {
  const out: string[] = [];
  const err: string[] = [];
  const io = {
    out: (text: string) => void out.push(text),
    err: (text: string) => void err.push(text),
    isTerminal: false,
    ask: async () => undefined,
    columns: 80,
  };
  expect(await main(["completion", "fish"], io, systemMachine())).toBe(0);
  expect(out).toEqual([COMPLETIONS.fish(program)]);
  expect(await main(["completion", "tcsh"], io, systemMachine())).toBe(2);
  expect(err.join("")).toContain("Allowed choices are bash, zsh, fish");
});

describe.each(Object.keys(COMPLETIONS) as Shell[])("%s", (shell) => {
  test.skipIf(requireTools(`tests of the completion for ${shell}`, shell)).each(CASES)(
    "%s",
    (line, found) => {
      const script = join(folder, `nodeyard.${shell}`);
      writeFileSync(script, COMPLETIONS[shell](program));
      expect(FOUND[shell](script, line)).toEqual(found);
    },
  );
});
