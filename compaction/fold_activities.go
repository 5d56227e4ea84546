package compaction

import "github.com/pgagui/pgagui/internal/jsontree"

// This file folds activities: messages whose content is an object, which patches change.

// snapshotActivity sets the content of an activity, or makes it. With `replace` false it only merges metadata into
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
	case f.messages.at(place).role == roleActivity:
		if !replace {
			f.mergeActivityMetadata(place, e)
			return
		}
		m := f.editAlone(place)
		m.tree.Set("activityType", jsontree.Kept(e.values[fieldActivityType]))
		m.tree.Set("content", jsontree.Kept(content))
		m.patched, m.patching = false, nil
		m.tree.Delete("subagentRunId")
		m.setSubagent(e)
		mergeMetadata(m.tree, e.values[fieldMetadata])
	case replace:
		if f.messages.at(place).repeated {
			f.looksAtMessages()
		}
		f.looksAtMessages()
		gone := f.messages.at(place)
		f.messages.set(place, f.newActivity(e, content))
		if len(gone.calls) > 0 {
			f.index = nil
		}
		f.order++
	}
}

func (f *Fold) newActivity(e *event, content []byte) *Message {
	m := f.buildMessage(e.values[fieldMessageID], []byte(`"activity"`))
	m.tree.Add("activityType", jsontree.Kept(e.values[fieldActivityType]))
	m.tree.Add("content", jsontree.Kept(content))
	m.setSubagent(e)
	mergeMetadata(m.tree, e.values[fieldMetadata])
	return m
}

func (f *Fold) mergeActivityMetadata(place int, e *event) {
	if e.values[fieldMetadata] != nil {
		mergeMetadata(f.edit(place).tree, e.values[fieldMetadata])
	}
}

// patchedContent is the content of an activity under patches. It stays with the message from the first patch on, also if that fails:
// to find the content in the message, and to take it apart, takes a look at all that is in it.
type patchedContent struct {
	document         jsontree.Document
	isGiven, hasType bool // the message has a content, an activityType
}

func newPatchedContent(m *Message, by *jsontree.Owner) *patchedContent {
	given := m.member("content")
	content := &patchedContent{isGiven: given != nil, hasType: m.member("activityType") != nil}
	if given == nil {
		given = jsontree.Raw("{}")
	}
	content.document = jsontree.NewDocument(by, given)
	return content
}

// patchActivity changes the content of an activity that exists. A patch that fails changes nothing but the metadata.
func (f *Fold) patchActivity(e *event) {
	patch := []byte("[]")
	if e.values[fieldPatch] != nil {
		patch = e.values[fieldPatch]
	}
	f.bring(e, broughtByMessage|fieldActivityType.set())
	f.usage.brought += jsontree.GuardedOctets(patch)
	f.applyPatch(e, patch)
}

func (f *Fold) applyPatch(e *event, patch []byte) {
	if jsontree.HasCopy(patch) {
		defer f.look()
	}
	place := f.find(e.decoded(fieldMessageID))
	if place < 0 || f.messages.at(place).role != roleActivity {
		return
	}
	f.mergeActivityMetadata(place, e)
	m := f.own(place)
	content := m.patching
	if content == nil {
		content = newPatchedContent(m, f.owner)
	}
	if m.repeated || !content.isGiven || !content.hasType {
		// The reducer in SQL cannot put off such a patch.
		f.usage.spent += jsontree.FuelOfCopiedOctet * jsontree.OctetsOf(content.document.Value())
	}
	if m.repeated {
		content = &patchedContent{document: jsontree.NewDocument(f.owner, jsontree.Copy(content.document.Value(), f.owner))}
	} else {
		m.patching = content
	}
	null, isNull := content.document.Value().(jsontree.Raw)
	if isNull = isNull && string(null) == "null"; isNull {
		content.document.Reset(jsontree.Raw("{}"))
	}
	if f.patch(&content.document, patch) {
		m := f.editAlone(place)
		m.tree.Set("content", content.document.Value())
		m.patched = true
		m.tree.Set("activityType", jsontree.Kept(e.values[fieldActivityType]))
		content.isGiven, content.hasType = true, true
		m.patching = content
	} else if isNull {
		content.document.Reset(null)
	}
	if jsontree.HasCopy(patch) {
		f.mayHaveGrown(string(e.decoded(fieldMessageID)))
	}
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
		f.usage.brought += jsontree.GuardedOctets(patch)
	}
	if snapshot != nil {
		f.usage.brought += jsontree.GuardedOctets(snapshot)
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
