import { plain, renderTable } from "@nodeyard/operations/listing";
import type { Command } from "commander";
import { withBackend } from "../backend/with-backend.ts";
import { printJson, printSkipped } from "../listing.ts";
import { demandProvider } from "../names.ts";
import type { Session } from "../session.ts";

/** `nodeyard info`: with Nodepool's two tables first, which scripts parse; what Nodeyard adds comes after them. */
export function defineInfo(command: Command, session: Session): void {
  command
    .argument("<provider>", "name of a provider")
    .option("--json", "an object on stdout")
    .action((provider: string, { json }: { readonly json?: boolean }) =>
      withBackend(session, async (backend) => {
        const { io } = session;
        const { skipped, ...found } = await backend.call("get_provider_records", { path: { id: provider } });
        const { images, nodes: rows, backing_nodes: backings, served_by: servedBy, unreadable } = found;
        // A provider without anything may be a misspelt name, and only then its name is worth a look at the configuration.
        if (images.length + rows.length + backings.length + servedBy.length === 0)
          await demandProvider(session, backend, provider);
        // Columns that Nodepool does not have appear only where there is something in them.
        const slotted = rows.some((row) => row.slot !== null);
        if (json === true) {
          printJson(io, {
            provider,
            images,
            nodes: rows,
            backing_nodes: backings.map(({ id }) => id),
            served_by: servedBy,
            unreadable,
          });
        } else {
          io.out(`ZooKeeper data for provider ${plain(provider)}\n\nImage data:\n`);
          const imageRows = images.map(({ image, build, uploads }) => [image, build, uploads]);
          io.out(renderTable(["Image Name", "Build ID", "Upload IDs"], imageRows));
          io.out("\nNodes:\n");
          const nodeRows = rows.map((row) => [
            row.id,
            row.server_id,
            ...(slotted ? [row.backing_node, row.slot] : []),
          ]);
          const more = slotted ? ["Backing Node", "Slot"] : [];
          io.out(renderTable(["ID", "Server ID", ...more], nodeRows));
          if (backings.length > 0) {
            io.out("\nBacking nodes, of other providers:\n");
            const backingRows = backings.map(({ id, provider, state }) => [id, provider, state]);
            io.out(renderTable(["ID", "Provider", "State"], backingRows));
          }
          // Ancestors' output ends here where a launcher serves it.
          if (servedBy.length === 0 && rows.length + backings.length > 0)
            io.out(
              `\nNo launcher serves ${plain(provider)}. To see what happens to a node: nodeyard explain ID\n`,
            );
        }
        printSkipped(io, skipped);
        if (unreadable.length > 0)
          io.err(
            `nodeyard: leak sweeps of ${plain(provider)} delete nothing while node records that may belong to it cannot be read; to remove one: nodeyard delete ${plain(unreadable[0]!)}\n`,
          );
      }),
    );
}
