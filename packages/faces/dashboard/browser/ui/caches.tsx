import { size } from "@nodeyard/client/amounts";
import type { Machines } from "../data/rows.ts";
import { Link, When } from "./pieces.tsx";

type Machine = Machines["items"][number];

/** What slivers of a machine left to later ones, the most recently used first. */
export function Caches({ caches }: Pick<Machine, "caches">) {
  if (caches.length === 0) return null;
  const moment = (seconds: number) => new Date(seconds * 1_000).toISOString();
  return (
    <div class="wide-table">
      <table class="groups">
        <caption class="dim">Caches that slivers left to later ones</caption>
        <thead>
          <tr>
            {["Cache", "Of", "Size", "Began with it", "Used", "Version left", "By", "Began empty"].map(
              (title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {[...caches]
            .sort((a, b) => b.used - a.used)
            .map(({ id, name, key, bytes, hits, lost, used, committed, by, node, began, pinned }) => (
              <tr key={id}>
                <th scope="row" title={id}>
                  {name}
                  {pinned && " (pinned)"}
                </th>
                {/* Of the key, the installation is that of the page. */}
                <td>{key.slice(1).filter(Boolean).join(", ")}</td>
                <td>{size(bytes)}</td>
                <td>
                  {hits} {hits === 1 ? "sliver" : "slivers"}
                  {lost > 0 && `, ${lost} versions lost`}
                </td>
                <td>
                  <When at={moment(used)} />
                </td>
                <td>
                  <When at={moment(committed)} />
                </td>
                <td>{node === null ? by : <Link view="nodes" id={node} />}</td>
                <td>
                  <When at={moment(began)} />
                </td>
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  );
}
