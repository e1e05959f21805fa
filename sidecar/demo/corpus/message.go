package corpus

import (
	"fmt"
	"strconv"
	"time"
)

const (
	firstID     = 1000   // partner_id of partner 0
	firstOrder  = 500000 // order_id of order 0
	creditFirst = 500
	creditStep  = 137
	creditMod   = 20000 // a bound that no whole multiple of the step meets soon, so that limits differ
)

// epoch is the updated_at of partner 0; each further partner is a minute later.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var trades = []string{
	"Hydraulique", "Roulements", "Fixations", "Pneumatique", "Visserie", "Soudure", "Outillage", "Robinetterie", "Courroies",
}

var cities = []struct{ name, country string }{
	{"Lyon", "FR"},
	{"Bruxelles", "BE"},
	{"Milano", "IT"},
	{"Porto", "PT"},
	{"Hamburg", "DE"},
	{"Sevilla", "ES"},
	{"Utrecht", "NL"},
	{"Graz", "AT"},
	{"Gdansk", "PL"},
	{"Basel", "CH"},
	{"Aarhus", "DK"},
}

var segments = []string{"industry", "retail", "wholesale"}

var articles = []string{"pump seal", "ball bearing", "hex bolt", "air hose", "drive belt", "gate valve", "weld rod"}

// fields are what the demo knows of partner i.
type fields struct {
	id      int
	name    string
	city    string
	country string
	credit  int
	at      time.Time
}

func fieldsOf(i int) fields {
	c := cities[i%len(cities)]
	return fields{
		id:      firstID + i,
		name:    fmt.Sprintf("%s %s %d", trades[i%len(trades)], c.name, firstID+i),
		city:    c.name,
		country: c.country,
		credit:  creditFirst + creditStep*i%creditMod,
		at:      epoch.Add(time.Duration(i) * time.Minute),
	}
}

func (f fields) key() []byte { return strconv.AppendInt(nil, int64(f.id), 10) }

// body is the partner object without its braces, behind the given name of the id field. Names and cities hold nothing
// that JSON escapes.
func (f fields) body(idField string) string {
	return fmt.Sprintf(`"%s":%d,"name":"%s","city":"%s","country":"%s","credit_limit":%d,"updated_at":"%s"`,
		idField, f.id, f.name, f.city, f.country, f.credit, f.at.Format(time.RFC3339))
}

func (f fields) message(value string) Message {
	return Message{Key: f.key(), Value: []byte(value), At: f.at}
}

func partner(i int) Message {
	f := fieldsOf(i)
	return f.message("{" + f.body("partner_id") + "}")
}

// order i belongs to partner i modulo 2,400, so that every partner has ten, all in one partition.
func order(i int) Message {
	f := fieldsOf(i % Partners)
	const centsFirst, centsStep, centsMod = 995, 3719, 250000
	cents := centsFirst + centsStep*i%centsMod
	at := epoch.Add(time.Duration(i) * time.Minute)
	m := Message{Key: f.key(), At: at}
	m.Value = fmt.Appendf(nil, `{"order_id":%d,"partner_id":%d,"article":"%s","quantity":%d,"amount":%d.%02d,"currency":"EUR","ordered_at":"%s"}`,
		firstOrder+i, f.id, articles[i%len(articles)], 1+i%12, cents/100, cents%100, at.Format(time.RFC3339))
	return m
}

// drifting is a producer that changes its mind: two more fields from one message on.
func drifting(i int) Message {
	if i < DriftFrom {
		return partner(i)
	}
	f := fieldsOf(i)
	return f.message(fmt.Sprintf(`{%s,"vat_number":"%s%09d","segment":"%s"}`, f.body("partner_id"), f.country, f.id, segments[i%len(segments)]))
}

// raw has the names and shapes that an export of an ERP is fond of.
func raw(i int) Message {
	f := fieldsOf(i)
	tenths := 15 * i // MONTANT_€ is 1.5 a message, always written with its decimal point
	return f.message(fmt.Sprintf(
		`{"partner_id":%d,"Partner Name":"%s","credit.limit":%d,"MONTANT_€":%d.%d,"address":{"street":"%d rue de l'Usine","city":"%s"},"tags":["erp","partner","batch-%d"]}`,
		f.id, f.name, f.credit, tenths/10, tenths%10, i, f.city, i%10))
}

// reserved calls the partner's id what the connector's own first column is called.
func reserved(i int) Message {
	f := fieldsOf(i)
	return f.message("{" + f.body("id") + "}")
}

// poisoned is a partner, but for one message in seven: by turns a cut object, an array and a scalar.
func poisoned(i int) Message {
	const every, at = 7, 3
	if i%every != at {
		return partner(i)
	}
	f := fieldsOf(i)
	switch i / every % 3 {
	case 0:
		return f.message(`{"broken": `)
	case 1:
		return f.message(fmt.Sprintf(`[%d,"%s"]`, f.id, f.name))
	default:
		return f.message(fmt.Sprintf(`"%s"`, f.name))
	}
}

// compacted is a thousand partners, then the tombstones of the first keys; fed further it is new partners.
func compacted(i int) Message {
	if i < Compacted || i >= Compacted+Tombstones {
		return partner(i)
	}
	m := fieldsOf(i - Compacted).message("")
	m.Value = nil
	m.At = epoch.Add(time.Duration(i) * time.Minute)
	return m
}
