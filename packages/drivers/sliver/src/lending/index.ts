export { FREE, isIdle, type Lending, setBusy, setIdle, turnOf, withLoans } from "./document.ts";
export { lendingOfPool, lends, lendTags } from "./pools.ts";
export { LENT, type Lent, loansOf, type Party, POLICY, surplusOf } from "./rule.ts";
export { markUse, rest, wake } from "./turns.ts";
