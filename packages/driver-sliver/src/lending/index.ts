export { FREE, isIdle, type Lending, setBusy, setIdle, turnOf, withLoans } from "./document.ts";
export { LENT, type Lent, loansOf, type Party, POLICY, surplusOf } from "./rule.ts";
