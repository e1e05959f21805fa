package table

import "testing"

type value struct {
	kind Kind
	text string
}

func TestInferTypesAFieldByItsFirstChunk(t *testing.T) {
	for name, c := range map[string]struct {
		values []value
		want   string
	}{
		"nothing seen":                     {nil, "text"},
		"null throughout":                  {[]value{{Null, "null"}, {Null, "null"}}, "text"},
		"whole numbers":                    {[]value{{Int, "1"}, {Null, ""}, {Int, "-9223372036854775808"}}, "bigint"},
		"decimals that fit":                {[]value{{Number, "1.10"}, {Number, "99999999999999.9999"}}, "numeric(18,4)"},
		"zeros at the end do not count":    {[]value{{Number, "1.00000000"}}, "numeric(18,4)"},
		"exponents are written out":        {[]value{{Number, "1.5e3"}, {Number, "12e-4"}}, "numeric(18,4)"},
		"five decimals":                    {[]value{{Number, "1.5"}, {Number, "1.00001"}}, "numeric"},
		"fifteen whole digits":             {[]value{{Number, "100000000000000.5"}}, "numeric"},
		"fifteen whole digits by exponent": {[]value{{Number, "1e14"}}, "numeric"},
		"fourteen digits by exponent":      {[]value{{Number, "1e13"}}, "numeric(18,4)"},
		"small by exponent":                {[]value{{Number, "1e-5"}}, "numeric"},
		"beyond int64":                     {[]value{{Number, "9223372036854775808"}}, "numeric"},
		"huge exponent":                    {[]value{{Number, "1e99999999999999999999"}}, "numeric"},
		"huge negative exponent":           {[]value{{Number, "1e-99999999999999999999"}}, "numeric"},
		"zero with a huge exponent":        {[]value{{Number, "0e999999999999"}}, "numeric(18,4)"},
		"negative zero":                    {[]value{{Number, "-0.0"}}, "numeric(18,4)"},
		"whole and decimal":                {[]value{{Int, "1"}, {Number, "1.5"}}, "numeric"},
		"booleans":                         {[]value{{Bool, "true"}, {Null, "null"}}, "boolean"},
		"strings":                          {[]value{{String, "a"}}, "text"},
		"objects":                          {[]value{{JSON, "{}"}}, "jsonb"},
		"objects and anything":             {[]value{{JSON, "{}"}, {Int, "1"}, {String, "a"}}, "jsonb"},
		"strings and numbers":              {[]value{{String, "a"}, {Int, "1"}}, "text"},
		"booleans and numbers":             {[]value{{Bool, "true"}, {Int, "1"}}, "text"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen Seen
			for _, v := range c.values {
				seen.Add(v.kind, []byte(v.text))
			}
			if got := Infer(seen); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func FuzzExtentNeverMeasuresLessThanItsDigits(f *testing.F) {
	for _, s := range []string{"0", "-1.5e3", "1e-3", "0.000100", "123456789012345678"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := extentOf([]byte(s))
		if e.whole < 0 || e.decimals < 0 {
			t.Errorf("%q measures %+v", s, e)
		}
	})
}
