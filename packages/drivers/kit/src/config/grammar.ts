import { z } from "zod";
import { toNumber } from "./vocabulary.ts";

/** Which values of a key can work, where its type allows more. Examples are for the test that goes through all tables. */
export interface Grammar {
  /** What to write, as in "write a port, from 1 to 65535". */
  readonly write: string;
  /** Values of another type are true: the schema and the reader report those. */
  readonly holds: (value: unknown) => boolean;
  readonly right: readonly unknown[];
  readonly wrong: readonly unknown[];
  /** How a message shows a value that is wrong. Absent: as JSON, cut after 60 characters. */
  readonly shown?: (value: unknown) => string;
  /** The same for editors, in keywords of JSON Schema. */
  readonly json?: object;
}

/** Examples of a grammar of texts. */
type Examples = readonly [right: readonly string[], wrong: readonly string[]];

/** A text that matches. */
export function pattern(write: string, regExp: RegExp, examples: Examples): Grammar {
  const json = regExp.flags === "" ? { pattern: regExp.source } : {};
  return { ...textLike(write, (value) => regExp.test(value), examples), json };
}

/** A text that matches, of which the best explanation is an example. */
export function asIn(
  what: string,
  right: string | readonly [string, ...string[]],
  regExp: RegExp,
  wrong: readonly string[],
): Grammar {
  const all = typeof right === "string" ? [right] : right;
  return pattern(`${what}, as in ${all[0]}`, regExp, [all, wrong]);
}

/** One of these words. */
export function among(words: readonly string[], ...wrong: readonly string[]): Grammar {
  const write = `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
  return { ...textLike(write, (value) => words.includes(value), [words, wrong]), json: { enum: words } };
}

/** A text for which `fits` is true. A variable of the environment that is not set here is no mistake of the file. */
export function textLike(write: string, fits: (text: string) => boolean, [right, wrong]: Examples): Grammar {
  const holds = (value: unknown) =>
    (typeof value !== "string" && typeof value !== "number") ||
    String(value).includes("%(NODEPOOL_") ||
    fits(String(value));
  return { write, holds, right, wrong };
}

/** The same, but an empty text is as an absent key. */
export function orEmpty(grammar: Grammar): Grammar {
  const holds = (value: unknown) => value === "" || grammar.holds(value);
  const wrong = grammar.wrong.filter((value) => value !== "");
  return { ...grammar, holds, right: ["", ...grammar.right], wrong, json: {} };
}

/** A whole number in a range, both ends included. */
export function whole(least: number, most = Number.MAX_SAFE_INTEGER, what = "a whole number"): Grammar {
  const isOpen = most === Number.MAX_SAFE_INTEGER;
  return {
    write: isOpen ? `${what} of at least ${least}` : `${what} from ${least} to ${most}`,
    holds: numeric((value) => Number.isInteger(value) && value >= least && value <= most),
    right: isOpen ? [least, least + 1] : [least, most],
    wrong: isOpen ? [least - 1] : [least - 1, most + 1],
    json: isOpen ? { minimum: least } : { minimum: least, maximum: most },
  };
}

/** A time limit: within none, nothing can happen. */
export const ABOVE_0: Grammar = {
  write: "a number above 0",
  holds: numeric((value) => value > 0),
  right: [1, 86_400],
  wrong: [0, -1],
  json: { exclusiveMinimum: 0 },
};

/** An amount or an age. */
export const FROM_0: Grammar = {
  write: "0 or more",
  holds: numeric((value) => value >= 0),
  right: [0, 1],
  wrong: [-1],
  json: { minimum: 0 },
};

/** A TCP port. */
export const PORT = whole(1, 65_535, "a port");

/** Something, but neither nothing nor blanks. */
export const NOT_EMPTY = pattern("a text that is not empty", /\S/, [["x y"], ["", " "]]);

/** A name that a cloud gives to an object. */
export const CLOUD_NAME = pattern("1 to 255 characters", /^[^\n]{1,255}$/, [
  ["my net"],
  ["", "x".repeat(256)],
]);

/** A relative path would depend on the folder in which the program was started. */
export const ABSOLUTE = pattern("an absolute path", /^\//, [["/srv/x"], ["x", "./x"]]);

const IPV6 = z.ipv6();
/** RFC 1123 and underscores, or an address. The port has a key of its own. */
export const HOST = textLike(
  "a host name or an address, without brackets and without a port",
  (host) =>
    IPV6.safeParse(host.replace(/%\w+$/, "")).success ||
    (/^(?=.{1,253}\.?$)[\p{L}\p{N}_]([\p{L}\p{N}_.-]*)$/u.test(host) && !/\.\./.test(host)),
  [
    ["zk1", "board-1.lab.example.org", "192.0.2.1", "2001:db8::1"],
    ["zk1:2281", "[2001:db8::1]", "a b", "user@host", "http://host", "a..b", ""],
  ],
);

/** The same, with brackets around an address of IPv6, which the reader of the key takes away. */
export const HOST_IN_BRACKETS: Grammar = {
  ...HOST,
  holds: (value) =>
    HOST.holds(typeof value === "string" ? value.replace(/^\[([\da-f:.%]+)\]$/i, "$1") : value),
  right: [...HOST.right, "[2001:db8::1]"],
  wrong: HOST.wrong.filter((value) => value !== "[2001:db8::1]"),
};

/** A list or mapping with this many values. */
export function sized(least: number, most = Number.POSITIVE_INFINITY): Grammar {
  const size = (value: unknown) => Object.keys(Object(value)).length;
  return {
    write: most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most} of them`,
    holds: (value) => size(value) >= least && size(value) <= most,
    right: [Array(least).fill("x")],
    wrong: [Array(least === 0 ? most + 1 : 0).fill("x")],
    shown: (value) => `a list of ${size(value)}`,
  };
}

/** A text of a length in bytes, which is shown in place of the text: it may be secret. */
export function bytes(most: number): Grammar {
  const size = (value: unknown) => Buffer.byteLength(String(value));
  return {
    ...textLike(`at most ${most} bytes`, (text) => size(text) <= most, [
      ["#cloud-config\n"],
      ["x".repeat(most + 1)],
    ]),
    shown: (value) => `${size(value)} bytes long`,
  };
}

const words = (write: string, names: readonly string[], wrong: string): Grammar =>
  textLike(
    `${write}: ${names.join(", ")}, or the name of a collection's with dots`,
    (word) => names.includes(word) || /^\w+(\.\w+)+$/.test(word),
    [["community.general.lxc", ...names], [wrong]],
  );
/** Plugins that Ansible and its usual collections have. A name with a dot is one of another collection. */
export const CONNECTION_TYPE = words(
  "a connection plugin of Ansible",
  // biome-ignore format: a list of words
  ["ssh", "network_cli", "winrm", "psrp", "paramiko", "paramiko_ssh", "libssh", "netconf", "httpapi", "local", "kubectl", "oc", "docker",
    "podman", "buildah", "lxc", "lxd", "incus", "chroot", "jail", "zone", "libvirt_lxc", "libvirt_qemu", "aws_ssm", "vmware_tools", "napalm",
    "saltstack", "project", "namespace"],
  "telnet",
);
/** The same of shells. */
export const SHELL_TYPE = words(
  "a shell plugin of Ansible",
  ["sh", "csh", "fish", "powershell", "cmd"],
  "zsh",
);

/** A value in a message. */
export function shownValue({ shown }: Grammar, value: unknown): string {
  if (shown !== undefined) return shown(value);
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function numeric(fits: (value: number) => boolean) {
  return (value: unknown): boolean => {
    const number = toNumber(value);
    return number === undefined || fits(number);
  };
}
