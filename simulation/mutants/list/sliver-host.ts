import { faultsIn, type Mutant } from "../mutant.ts";

const SLIVER = "packages/sliver/src";
const TESTS = "packages/sliver/test";

/** What a sliver host believes, keeps and takes away. */
export const SLIVER_HOST: readonly Mutant[] = [
  ...faultsIn(`${SLIVER}/core/deliver.ts`, [
    {
      name: "older-documents-are-obeyed",
      breaks: "rule 10",
      find: "if (order < 0) throw stale(version, state);",
      put: "",
      tests: [`${TESTS}/core/deliver`],
    },
    {
      name: "what-cannot-be-held-goes",
      breaks: "promise: what a document lists stays",
      find: "listed.has(name) || compareVersions(stamp, version) >= 0",
      put: "compareVersions(stamp, version) >= 0",
    },
    {
      name: "guarantees-are-not-summed",
      breaks: "rule 9",
      find: "const lack = promises.lacks(given, old);",
      put: "const lack = promises.lacks(given, given as never) && undefined;",
      tests: [`${TESTS}/core/deliver`],
    },
  ]),
  ...faultsIn(`${SLIVER}/core/spares.ts`, [
    {
      name: "a-spare-that-starts-is-given-away",
      breaks: "promise: a sliver that runs answers",
      find: "applied !== undefined && !doing.isBusy(incarnation)",
      put: "applied !== undefined && incarnation > 0",
      tests: [`${TESTS}/manager/spares`],
    },
  ]),
  ...faultsIn("packages/sliver-protocol/src/signed.ts", [
    {
      name: "any-signature-is-believed",
      breaks: "rule 11",
      find: "if (!verify(null,",
      put: "if (verify(null, Buffer.alloc(0), publicKey(key.x), Buffer.alloc(64)) && !verify(null,",
    },
  ]),
  ...faultsIn(`${SLIVER}/core/signed-document.ts`, [
    {
      name: "documents-of-other-hosts-are-obeyed",
      breaks: "promise: a document is for one host",
      find: "if (document.node !== node)",
      put: 'if (document.node === "")',
    },
  ]),
  ...faultsIn(`${SLIVER}/store/store.ts`, [
    {
      name: "store-is-not-synced",
      breaks: "rule 10",
      find: "await file.sync();",
      put: "",
      tests: [`${TESTS}/store/store`],
    },
    {
      name: "store-folder-is-not-synced",
      breaks: "rule 10",
      find: "await this.#files.syncFolder();",
      put: "",
      tests: [`${TESTS}/store/store`],
    },
  ]),
  ...faultsIn(`${SLIVER}/sources/signed.ts`, [
    {
      name: "refused-documents-are-not-fetched-again",
      breaks: "rule 4",
      find: "await this.#take(fetched.text);",
      put: "this.#etag = fetched.etag; await this.#take(fetched.text);",
      tests: [`${TESTS}/sources/signed`],
    },
  ]),
  ...faultsIn(`${SLIVER}/manager/manager.ts`, [
    {
      name: "a-change-wakes-no-sync",
      breaks: "rule 4",
      find: "if (this.state !== before) this.requestSync();",
      put: "",
      tests: [`${TESTS}/manager/reconcile`],
    },
  ]),
  ...faultsIn(`${SLIVER}/core/loans.ts`, [
    {
      name: "loans-go-below-the-floor",
      breaks: "rule 9",
      find: 'if (loan.amount > residual[resource] - minimum) return "floor";',
      put: 'if (loan.amount > residual[resource]) return "floor";',
      tests: [`${TESTS}/core/loans`],
    },
  ]),
];
