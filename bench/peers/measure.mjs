/** The seconds that each of so many calls of an operation takes. */
export async function secondsEach(times, operation) {
  // Else an operation pays for garbage that others left.
  globalThis.gc?.(); // there with node --expose-gc
  const each = [];
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    await operation();
    each.push((performance.now() - start) / 1000);
  }
  return each;
}

export const seconds = async (operation) => (await secondsEach(1, operation))[0];
