// Three days in Lisbon, the conversation of the demo: CopilotKit's built-in agent behind its runtime, seven runs, two forks.
//
//   run-1  plan: reasoning, three tools in parallel, a state snapshot
//   ├ run-2  the days filled in: state deltas
//   │ └ run-3  book the hotel: interrupted for approval
//   │   └ run-4  approved: booked
//   └ run-5  back to run-1: Porto instead of a third day
//     ├ run-6  a summary that fails in mid-sentence
//     └ run-7  back to run-5: the same again, with a card (an activity)

import { defineTool } from "@copilotkit/runtime/v2";
import { z } from "zod";
import { Conversation } from "../client.mjs";
import { builtInAgent, withCopilotKit } from "../copilotkit.mjs";
import { Script, failure, reasoning, text, toolCall } from "../scripted-model.mjs";

const searchFlights = defineTool({
  name: "searchFlights",
  description: "Flights between two cities",
  parameters: z.object({ from: z.string(), to: z.string(), date: z.string() }),
  execute: async () => [
    { flight: "TP 1359", departs: "07:10", arrives: "09:55", eur: 118 },
    { flight: "BA 0504", departs: "11:40", arrives: "14:25", eur: 96 },
  ],
});

const searchHotels = defineTool({
  name: "searchHotels",
  description: "Hotels in a part of a city",
  parameters: z.object({ city: z.string(), quarter: z.string() }),
  execute: async () => [
    { hotel: "Casa do Miradouro", quarter: "Graça", eurPerNight: 124, stars: 4.7 },
    { hotel: "Pensão Amarela", quarter: "Alfama", eurPerNight: 89, stars: 4.4 },
  ],
});

const getWeather = defineTool({
  name: "getWeather",
  description: "The usual weather of a city in a month",
  parameters: z.object({ city: z.string(), month: z.string() }),
  execute: async () => ({ celsius: { day: 22, night: 14 }, rainyDays: 5 }),
});

const searchTrains = defineTool({
  name: "searchTrains",
  description: "Trains between two cities",
  parameters: z.object({ from: z.string(), to: z.string(), date: z.string() }),
  execute: async () => [{ train: "AP 123", departs: "08:39", arrives: "11:43", eur: 34.7 }],
});

// A person has to approve a booking, so the runtime interrupts the run instead of calling anything.
const bookHotel = defineTool({
  name: "bookHotel",
  description: "Books a hotel",
  parameters: z.object({ hotel: z.string(), nights: z.number(), eur: z.number() }),
  interrupt: true,
  interruptReason: "approval",
  interruptMessage: "Book Casa do Miradouro, 3 nights, €372?",
});

const generateSandboxedUi = {
  name: "generateSandboxedUi",
  description: "Shows an HTML card to the user",
  parameters: { type: "object", properties: { initialHeight: { type: "number" }, html: { type: "string" } } },
};

const setState = (id, snapshot) => toolCall(id, "AGUISendStateSnapshot", { snapshot });
const changeState = (id, ...delta) => toolCall(id, "AGUISendStateDelta", { delta });

export async function tripToLisbon() {
  const script = new Script();
  const tools = [searchFlights, searchHotels, getWeather, searchTrains, bookHotel];
  const agent = builtInAgent({ script, tools, prompt: "You plan trips and keep the plan in the application state." });
  let conversation;
  await withCopilotKit({ agent, openGenerativeUI: true }, async (url) => {
    conversation = new Conversation({ url, threadId: "trip-to-lisbon" });

    script.add(
      [
        reasoning("think-plan", "Two people, food first, no queues. Flights, a hotel away from the cruise crowds, and May's weather: all three at once."),
        toolCall("flights", "searchFlights", { from: "London", to: "Lisbon", date: "2027-05-14" }),
        toolCall("hotels", "searchHotels", { city: "Lisbon", quarter: "Graça" }),
        toolCall("weather", "getWeather", { city: "Lisbon", month: "May" }),
      ],
      [
        setState("state-plan", {
          destination: "Lisbon",
          travellers: 2,
          budget: { total: 1200, spent: 0, currency: "EUR" },
          days: [],
          bookings: [],
        }),
      ],
      [
        text(
          "reply-plan",
          "May is lovely: 22 °C by day, 14 °C at night ☀️. I would take the **11:40 flight** (€96) and stay at **Casa do Miradouro** in Graça " +
            "(€124 a night), ten minutes above the crowds. Shall I fill in the three days?",
        ),
      ],
    );
    await conversation.turn({ runId: "run-1", says: "Plan three days in Lisbon in May for two. We love food and hate queues 🍤" });

    script.add(
      [
        reasoning("think-days", "Queues are at Belém before noon. So the market first, Belém late, and the viewpoint for the evening."),
        changeState(
          "state-days",
          { op: "add", path: "/days/-", value: { title: "Alfama and Graça", meals: ["Zé da Mouraria"] } },
          { op: "add", path: "/days/-", value: { title: "Belém, after four", meals: ["Pastéis de Belém"] } },
          { op: "add", path: "/days/-", value: { title: "Campo de Ourique", meals: ["Tasca da Esquina"] } },
        ),
      ],
      [changeState("state-note", { op: "add", path: "/days/1/note", value: "the monastery empties at 16:00" })],
      [
        text(
          "reply-days",
          "1. **Alfama and Graça** on foot, lunch at Zé da Mouraria.\n2. **Belém after four**, when the monastery empties, and pastéis for supper.\n" +
            "3. **Campo de Ourique**: the market locals use, dinner at Tasca da Esquina.",
        ),
      ],
    );
    await conversation.turn({ runId: "run-2", says: "Yes, fill them in." });

    script.add([
      text("reply-book", "Three nights come to €372. One click from you and it is booked."),
      toolCall("book-hotel", "bookHotel", { hotel: "Casa do Miradouro", nights: 3, eur: 372 }),
    ]);
    await conversation.turn({ runId: "run-3", says: "Perfect. Book the hotel." });

    script.add(
      [
        changeState(
          "state-booked",
          { op: "add", path: "/bookings/-", value: { hotel: "Casa do Miradouro", nights: 3, eur: 372, code: "CM-4471" } },
          { op: "replace", path: "/budget/spent", value: 372 },
        ),
      ],
      [text("reply-booked", "Booked: **CM-4471**, three nights from 14 May, free cancellation until the 12th 🎉")],
    );
    const resume = conversation.pendingInterrupts.map(({ id }) => ({
      interruptId: id,
      status: "resolved",
      payload: { approved: true, approvedBy: "Inês" },
    }));
    await conversation.turn({ runId: "run-4", resume });

    script.add(
      [
        toolCall("trains", "searchTrains", { from: "Lisbon", to: "Porto", date: "2027-05-16" }),
        changeState(
          "state-porto",
          { op: "replace", path: "/destination", value: "Lisbon and Porto" },
          { op: "add", path: "/days/-", value: { title: "Alfama and Graça" } },
          { op: "add", path: "/days/-", value: { title: "Belém, after four" } },
          { op: "add", path: "/days/-", value: { title: "Porto by train", train: "AP 123" } },
        ),
      ],
      [text("reply-porto", "Then two days in Lisbon and the **08:39 train** to Porto (3 h, €34.70). You fly home from there.")],
    );
    await conversation.turn({ runId: "run-5", parentRunId: "run-1", says: "What if we spent the third day in Porto?" });

    script.add([
      text("reply-summary", "Here is the whole trip: you land in Lisbon at 14:25 and"),
      failure("the model is overloaded, try again in a minute"),
    ]);
    await conversation.turn({ runId: "run-6", says: "Show me the whole trip on one card.", fails: true });

    script.add([
      text("reply-card", "Here it is:"),
      toolCall("draw-trip-card", "generateSandboxedUi", {
        initialHeight: 240,
        html:
          "<h1>Lisbon and Porto</h1><ol><li>Fri: land 14:25, Alfama and Graça</li><li>Sat: Belém after four</li>" +
          "<li>Sun: 08:39 to Porto, fly home at 20:05</li></ol>",
      }),
    ]);
    await conversation.turn({
      runId: "run-7",
      parentRunId: "run-5",
      says: "Show me the whole trip on one card.",
      tools: [generateSandboxedUi],
    });
  });
  script.assertSpent();
  return conversation.events();
}
