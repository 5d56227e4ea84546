package compaction

import "bytes"

// This file folds activities: messages whose content is an object, which patches change.

// snapshotActivity sets the content of an activity, or makes it. With `replace` false it does no more than merge metadata into
// an activity that exists.
func (f *Fold) snapshotActivity(e *event) {
	f.bring(e, broughtByMessage|fieldActivityType.set()|fieldContent.set())
	replace := e.values[fieldReplace] == nil || e.values[fieldReplace][0] == 't'
	f.setActivity(e, e.values[fieldContent], replace)
}

func (f *Fold) setActivity(e *event, content []byte, replace bool) {
	place := f.find(e.decoded(fieldMessageID))
	switch {
	case place < 0:
		f.push(f.newActivity(e, content))
	case f.messages[place].role == roleActivity:
		if !replace {
			f.mergeActivityMetadata(place, e)
			return
		}
		m := f.editAlone(place)
		m.tree.set("activityType", raw(kept(e.values[fieldActivityType])))
		m.tree.set("content", raw(kept(content)))
		m.patched = false
		m.tree.delete("subagentRunId")
		m.setSubagent(e)
		mergeMetadata(m.tree, e.values[fieldMetadata])
	case replace:
		if f.messages[place].repeated {
			f.looksAtMessages()
		}
		f.looksAtMessages()
		f.messages[place] = f.newActivity(e, content)
		f.index = nil // the calls of the message that was there are gone
	}
}

func (f *Fold) newActivity(e *event, content []byte) *Message {
	m := f.buildMessage(e.values[fieldMessageID], []byte(`"activity"`))
	m.tree.add("activityType", raw(kept(e.values[fieldActivityType])))
	m.tree.add("content", raw(kept(content)))
	m.setSubagent(e)
	mergeMetadata(m.tree, e.values[fieldMetadata])
	return m
}

func (f *Fold) mergeActivityMetadata(place int, e *event) {
	if e.values[fieldMetadata] != nil {
		mergeMetadata(f.edit(place).tree, e.values[fieldMetadata])
	}
}

// patchActivity changes the content of an activity that exists. A patch that fails changes nothing but the metadata.
func (f *Fold) patchActivity(e *event) {
	patch := []byte("[]")
	if e.values[fieldPatch] != nil {
		patch = e.values[fieldPatch]
	}
	f.bring(e, broughtByMessage|fieldActivityType.set())
	f.usage.brought += guardedOctets(patch)
	f.applyPatch(e, patch)
}

func (f *Fold) applyPatch(e *event, patch []byte) {
	if copies(patch) {
		defer f.look()
	}
	place := f.find(e.decoded(fieldMessageID))
	if place < 0 || f.messages[place].role != roleActivity {
		return
	}
	f.mergeActivityMetadata(place, e)
	m := f.messages[place]
	content := m.member("content")
	if content == nil || m.repeated || m.member("activityType") == nil {
		// The reducer in SQL cannot put off such a patch.
		f.usage.spent += fuelOfCopiedOctet * octetsOf(orEmpty(content))
	}
	if content == nil || bytes.Equal(written(content), []byte("null")) {
		content = raw("{}")
	}
	if m.repeated {
		content = copied(content, f.owner)
	}
	patched := document{owner: f.owner, root: content}
	if f.patch(&patched, patch) {
		m := f.editAlone(place)
		m.tree.set("content", patched.root)
		m.patched = true
		m.tree.set("activityType", raw(kept(e.values[fieldActivityType])))
	}
	if copies(patch) {
		f.mayHaveGrown(string(e.decoded(fieldMessageID)))
	}
}

// orEmpty is the value, or an empty object where there is none.
func orEmpty(v value) value {
	if v == nil {
		return raw("{}")
	}
	return v
}

// proposedActivity folds the ACTIVITY event of the activity proposal: a snapshot, a patch, or both.
func (f *Fold) proposedActivity(e *event) {
	snapshot, patch := e.values[fieldSnapshot], e.values[fieldPatch]
	if snapshot != nil && kindOf(snapshot) != isObject {
		snapshot = nil
	}
	if snapshot == nil && patch == nil {
		return
	}
	f.bring(e, broughtByMessage|fieldActivityType.set())
	if patch != nil {
		patch = asOperations(patch)
		f.usage.brought += guardedOctets(patch)
	}
	if snapshot != nil {
		f.usage.brought += guardedOctets(snapshot)
		f.setActivity(e, snapshot, true)
	}
	if patch != nil {
		f.applyPatch(e, patch)
	}
}

// asOperations makes a list of a patch that the proposals write as one operation.
func asOperations(patch []byte) []byte {
	if patch[0] == '[' {
		return patch
	}
	list := append(make([]byte, 0, len(patch)+2), '[')
	list = append(list, patch...)
	return append(list, ']')
}
