import { columns } from "@nodeyard/operations/listing";
import { nearest } from "@nodeyard/runtime";
import { installedPages } from "@nodeyard/telemetry/machine";
import type { Command } from "commander";
import { CommandError } from "../errors.ts";
import { printRows } from "../listing.ts";
import type { Session } from "../session.ts";

interface DocsOptions {
  readonly list?: boolean;
  readonly json?: boolean;
}

/** `nodeyard docs`: the documentation of this version, without a network. */
export function defineDocs(command: Command, { io }: Session): void {
  command
    .argument("[page]", "a page, by the end of its name: install, how-to/slivers; default: the first page")
    .option("--list", "list all pages")
    .option("--json", "the list, as an array on stdout: page, file")
    .addHelpText(
      "after",
      `
  $ xdg-open "$(nodeyard docs install)"     in a browser
  $ man nodeyard                            commands, and nodepool.yaml(5), on a terminal`,
    )
    .action((page: string | undefined, { list = false, json = false }: DocsOptions) => {
      const pages = installedPages();
      if (!list && !json) return io.out(`${fileOf(pages, page ?? "README")}\n`);
      const rows = [...pages].map(([name, file]) => ({ page: name, file }));
      printRows(io, rows, columns({ Page: "page", File: "file" }), { json });
    });
}

/** Throws CommandError where no page, or more than one, has this name. */
function fileOf(pages: ReadonlyMap<string, string>, name: string): string {
  const exact = pages.get(name);
  if (exact !== undefined) return exact;
  const found = [...pages].filter(([page]) => page.endsWith(`/${name}`));
  if (found.length === 1) return found[0]![1];
  const names = [...pages.keys()];
  const like = nearest(name, new Set(names.flatMap((page) => [page, page.split("/").at(-1)!])));
  const hint = like === undefined ? "" : `did you mean ${like}? `;
  const problem =
    found.length > 1
      ? `${found.length} pages are called ${name}: ${found.map(([page]) => page).join(", ")}`
      : `the documentation has no page ${JSON.stringify(name)}; ${hint}"nodeyard docs --list" lists all`;
  throw new CommandError("cli.no_such_page", problem);
}
